// The numbers of the limits, as they stood at each moment.
import type { History, Of } from "./history.js";
import type { Terms } from "./line.js";

export type Change = Of<"changing" | "changed">;

/** Which number counts for a slot, as `name` or `name/key`. */
export class Numbers {
  readonly #names: ReadonlySet<string>;
  readonly #totals: ReadonlySet<string>;
  readonly #terms: Terms;
  readonly #known = new Map<string, string>();

  constructor({ changes, runs }: History, terms: Terms) {
    const said = Object.keys(terms.limits);
    const slots = new Set(said);
    for (const { line } of runs) for (const slot of line.limits) slots.add(slot);
    this.#names = new Set([...said, ...changes.map(({ limit }) => limit)]);
    this.#totals = new Set([...slots].filter((slot) => !slot.includes("/")));
    this.#terms = terms;
  }

  /** `name`, `name/*`, or `name/key` where that key has a number of its own. */
  ruleOf(slot: string): string {
    let rule = this.#known.get(slot);
    if (rule === undefined) this.#known.set(slot, (rule = this.#find(slot)));
    return rule;
  }

  #find(slot: string): string {
    const cut = slot.indexOf("/");
    if (cut >= 0) return this.#names.has(slot) ? slot : `${slot.slice(0, cut)}/*`;
    // Said without a key, of a limit that has no total: meant for every key.
    return this.#totals.has(slot) ? slot : `${slot}/*`;
  }

  /** At the beginning; Infinity is no limit. */
  firstOf(rule: string): number {
    const every = `${rule.split("/")[0]!}/*`;
    return this.#terms.limits[rule] ?? this.#terms.limits[every] ?? Number.POSITIVE_INFINITY;
  }
}

/**
 * One number through time. While it is being changed, and nobody knows whether it has been, the
 * larger of the two is in force.
 */
export class Rule {
  #slots: number;

  constructor(first: number) {
    this.#slots = first;
  }

  get slots(): number {
    return this.#slots;
  }

  /** What was in force before. */
  change({ kind, slots }: Change): number {
    const [before, now] = [this.#slots, slots ?? Number.POSITIVE_INFINITY];
    this.#slots = kind === "changing" ? Math.max(before, now) : now;
    return before;
  }
}
