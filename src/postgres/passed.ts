/** A limit that a task has passed: its total, or a key of it. */
interface PassedLimit {
  readonly limit: number;
  readonly perKey: boolean;
  /** How long ago all of its slots were out: -Infinity if until the claim, Infinity if never. */
  readonly fullMs: number;
}

/** What a task has passed on its way to a worker. It had to wait at those that were full when it was due already. */
export interface Passed {
  /** For how long it had been due; -1 if it was tried before, because nobody knows since when it is due again. */
  readonly waitMs: number;
  readonly limits: readonly PassedLimit[];
}

const UNTIL_NOW = -1;
const NEVER = Number.MAX_SAFE_INTEGER;
// Between the totals, whose ids are positive, and the lanes.
const LANES = 0;

/** Reads what sluice.step tells of the tasks of one claim, of which most have passed the same. */
export class PassedReader {
  readonly #limits = new Map<string, readonly PassedLimit[]>();
  #last = "";
  #lastLimits: readonly PassedLimit[] = [];

  read(text: string): Passed {
    const comma = text.indexOf(",");
    if (comma < 0) return { waitMs: Number(text), limits: [] };
    const waitMs = Number(text.slice(0, comma));
    // Without a substring and its hash for each of many tasks that have passed the same.
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
    // The lanes of an order key and of a window are no limits.
    if (limit > 0) limits.push({ limit, perKey: true, fullMs });
  }
  return limits;
}

function fullMsOf(told: number): number {
  if (told === UNTIL_NOW) return Number.NEGATIVE_INFINITY;
  return told === NEVER ? Number.POSITIVE_INFINITY : told;
}
