import { bounded } from "./bounded.js";
import { catalogue, OTHER } from "./catalogue.js";
import { Histogram, type Sample } from "./histogram.js";

/** The limits that a task has passed, by id. */
interface Passed {
  readonly waitMs: number;
  readonly limits: readonly {
    readonly limit: number;
    readonly perKey: boolean;
    readonly fullMs: number;
  }[];
}

/** The counts of a limit. */
class GroupTally {
  acquired = 0;
  rejected = 0;
  readonly wait = new Histogram(catalogue.concurrency_wait_seconds.buckets, 1_000);

  add(other: GroupTally): void {
    this.acquired += other.acquired;
    this.rejected += other.rejected;
    this.wait.add(other.wait);
  }
}

// Limits chosen at enqueue may be one per customer: limits beyond this number count as OTHER.
const LIMITS_MAX = 10_000;

/**
 * Counts by limit. A claim reports ids. The name of a limit is read when it is first met, and counts from before the
 * reply are then added under the name.
 */
export class Groups {
  readonly #named = new Map<string, GroupTally>();
  readonly #totals = new Map<number, GroupTally>();
  readonly #keyed = new Map<number, GroupTally>();
  readonly #onUnknown: () => void;
  #unknown = new Set<number>();

  /** `onUnknown`: a limit was met whose name is unknown. */
  constructor(onUnknown: () => void) {
    this.#onUnknown = onUnknown;
  }

  /** Limits that will be met: reported from the beginning. */
  expect(names: readonly string[]): void {
    for (const name of names) this.#of(name);
  }

  /** All names so far. */
  get names(): string[] {
    return [...this.#named.keys()];
  }

  /** Limits whose names are unknown. */
  get unknown(): readonly number[] {
    return [...this.#unknown];
  }

  passed({ waitMs, limits }: Passed): void {
    for (const { limit, perKey, fullMs } of limits) {
      const known = perKey ? this.#keyed : this.#totals;
      const tally = known.get(limit) ?? this.#meet(known, limit);
      tally.acquired++;
      // guard: who came after the limit was full did not wait for it -> test/metrics/limits.test.ts: "a task that finds a free slot is not counted as rejected, however often the limit was full before"
      if (/* guard:full-before */ waitMs > fullMs /* end */) tally.rejected++;
      if (waitMs >= 0) tally.wait.observe(waitMs);
    }
  }

  /** Names of the requested limits, for those that exist. Limits that do not exist are not reported. */
  learn(asked: readonly number[], names: ReadonlyMap<number, string>): void {
    for (const id of asked) {
      const name = names.get(id);
      this.#unknown.delete(id);
      this.#count(this.#totals, id, name);
      this.#count(this.#keyed, id, name === undefined ? undefined : `${name}/*`);
    }
  }

  acquisitions(): Sample[] {
    return [...this.#named].flatMap(([group, { acquired, rejected }]) => [
      { labels: { group, result: "acquired" }, value: acquired },
      { labels: { group, result: "rejected" }, value: rejected },
    ]);
  }

  waits(name: string): Sample[] {
    return [...this.#named].flatMap(([group, { wait }]) => wait.samples(name, { group }));
  }

  #meet(known: Map<number, GroupTally>, limit: number): GroupTally {
    if (known.size >= LIMITS_MAX) return this.#of(OTHER);
    const tally = new GroupTally();
    known.set(limit, tally);
    this.#unknown.add(limit);
    this.#onUnknown();
    return tally;
  }

  #count(known: Map<number, GroupTally>, id: number, name: string | undefined): void {
    const until = known.get(id);
    if (until === undefined || name === undefined) return;
    const tally = this.#of(name);
    // The name may be requested again when the other part of the limit is met.
    if (tally === until) return;
    tally.add(until);
    known.set(id, tally);
  }

  #of(name: string): GroupTally {
    return bounded(this.#named, name, () => new GroupTally());
  }
}
