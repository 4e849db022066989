/** A limit that a task has passed: the total, or one key. */
interface PassedLimit {
  readonly limit: number;
  readonly perKey: boolean;
  /** How long ago the limit was last full, in ms: -Infinity if it was full until the claim, Infinity if never. */
  readonly fullMs: number;
}

/** The limits that a task has passed before its claim. It had to wait at those that were full after it became due. */
export interface Passed {
  /**
   * How long the task had been due, in ms; -1 if it was tried before, because the time it became due again is unknown.
   */
  readonly waitMs: number;
  readonly limits: readonly PassedLimit[];
}

const UNTIL_NOW = -1;
const NEVER = Number.MAX_SAFE_INTEGER;
// Separates the totals, whose ids are positive, from the lanes.
const LANES = 0;

/** Parses what sluice.step reports about the tasks of one claim. Most of them have passed the same limits. */
export class PassedReader {
  readonly #limits = new Map<string, readonly PassedLimit[]>();
  #last = "";
  #lastLimits: readonly PassedLimit[] = [];

  read(text: string): Passed {
    const comma = text.indexOf(",");
    if (comma < 0) return { waitMs: Number(text), limits: [] };
    const waitMs = Number(text.slice(0, comma));
    // Avoids a substring and its hash for each of many tasks that have passed the same limits.
    if (text.length - comma - 1 !== this.#last.length || !text.endsWith(this.#last))
      this.#remember(text.slice(comma + 1));
    return { waitMs, limits: this.#lastLimits };
  }

  #remember(rest: string): void {
    let limits = this.#limits.get(rest);
    if (limits === undefined) this.#limits.set(rest, (limits = limitsOf(rest)));
    this.#last = rest;
    this.#lastLimits = limits;
  }
}

function limitsOf(text: string): PassedLimit[] {
  const numbers = text.split(",").map(Number);
  const limits: PassedLimit[] = [];
  let i = 0;
  for (; i < numbers.length && numbers[i] !== LANES; i += 2)
    limits.push({ limit: numbers[i]!, perKey: false, fullMs: fullMsOf(numbers[i + 1]!) });
  const [late, lanes] = [numbers[i + 1] ?? 0, numbers.slice(i + 2)];
  for (const [at, limit] of lanes.entries()) {
    const fullMs = fullMsOf((late & (1 << at)) === 0 ? NEVER : UNTIL_NOW);
    // The lanes of order keys and windows are not limits.
    if (limit > 0) limits.push({ limit, perKey: true, fullMs });
  }
  return limits;
}

function fullMsOf(told: number): number {
  if (told === UNTIL_NOW) return Number.NEGATIVE_INFINITY;
  return told === NEVER ? Number.POSITIVE_INFINITY : told;
}
