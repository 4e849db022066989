import { within } from "../../core/within.js";
import type { Groups } from "../../metrics/groups.js";

interface LimitNamesOptions {
  readonly groups: Groups;
  readonly read: (limits: readonly number[]) => Promise<ReadonlyMap<number, string>>;
}

const ANSWER_MS_MAX = 1_000;
// The names of many limits arrive in several replies.
const LIMITS_PER_CALL_MAX = 1_000;

/** Reads the names of limits that claims have met: each once, and all unknown ones together. */
export class LimitNames {
  readonly #o: LimitNamesOptions;
  #asking: Promise<void> | null = null;

  constructor(options: LimitNamesOptions) {
    this.#o = options;
  }

  /** Returns when no name is unknown, or after a second. */
  async known(): Promise<void> {
    if (this.#o.groups.unknown.length > 0) await within(this.ask(), ANSWER_MS_MAX);
  }

  /** Reads the unknown names. If the database does not reply, the next new limit or the next scrape tries again. */
  ask(): Promise<void> {
    this.#asking ??= this.#ask()
      .catch(() => {})
      .finally(() => (this.#asking = null));
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { groups, read } = this.#o;
    // The claim that met one limit may have met others, and reports them within the same turn.
    await Promise.resolve();
    while (groups.unknown.length > 0) {
      const limits = groups.unknown.slice(0, LIMITS_PER_CALL_MAX);
      groups.learn(limits, await read(limits));
    }
  }
}
