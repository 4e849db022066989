import type { Logger } from "../../src/index.js";

/** A logger that keeps warnings and errors. */
export function collector(): Logger & { readonly lines: readonly string[] } {
  const lines: string[] = [];
  const keep = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
  return { lines, debug: () => {}, info: () => {}, warn: keep, error: keep };
}
