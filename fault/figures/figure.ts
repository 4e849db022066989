/** A figure that we promise to reach, and how it is measured. */
export interface Figure {
  readonly name: string;
  /** What must be seen. */
  readonly target: string;
  measure(tell: (line: string) => void): Promise<Measured>;
}

export interface Measured {
  readonly ok: boolean;
  /** What was seen, in words. */
  readonly seen: string;
  /** What makes it again. */
  readonly command: string;
}
