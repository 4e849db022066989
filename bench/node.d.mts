export function nodeFor(folder: string, version?: string): string;
export function isNewEnough(version: string): boolean;
