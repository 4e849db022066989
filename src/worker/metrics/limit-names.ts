import { within } from "../../core/within.js";
import type { Groups } from "../../metrics/groups.js";

interface LimitNamesOptions {
  readonly groups: Groups;
  readonly read: (limits: readonly number[]) => Promise<ReadonlyMap<number, string>>;
}

const ANSWER_MS_MAX = 1_000;
// Of many limits the names come in several replies.
const LIMITS_PER_CALL_MAX = 1_000;

/** The names of limits that claims have met: asked for once each, and all that are unknown together. */
export class LimitNames {
  readonly #o: LimitNamesOptions;
  #asking: Promise<void> | null = null;

  constructor(options: LimitNamesOptions) {
    this.#o = options;
  }

  /** Returns when none is unknown any more, or after a second. */
  async known(): Promise<void> {
    if (this.#o.groups.unknown.length > 0) await within(this.ask(), ANSWER_MS_MAX);
  }

  /** If the database does not answer, whoever meets the next one or looks at the numbers asks again. */
  ask(): Promise<void> {
    this.#asking ??= this.#ask()
      .catch(() => {})
      .finally(() => (this.#asking = null));
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { groups, read } = this.#o;
    // The claim that met one may have met others: they are told within the same turn.
    await Promise.resolve();
    while (groups.unknown.length > 0) {
      const limits = groups.unknown.slice(0, LIMITS_PER_CALL_MAX);
      groups.learn(limits, await read(limits));
    }
  }
}
