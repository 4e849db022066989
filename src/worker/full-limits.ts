import type { Clock, Logger } from "../core/ports.js";
import { tellTrouble } from "../postgres/errors.js";
import type { ClaimedTask } from "../postgres/step.js";
import type { Events, LimitFullEvent } from "./events.js";
import type { AnyHandler } from "./execution.js";

interface FullLimitsOptions {
  readonly events: Events;
  readonly worker: string;
  readonly handlers: ReadonlyMap<number, AnyHandler>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Reads the names of limits. */
  readonly names: (limits: readonly number[]) => Promise<ReadonlyMap<number, string>>;
}

/** A limit at which a claimed task had to wait. */
interface Full {
  readonly limit: number;
  readonly event: Omit<LimitFullEvent, "limit">;
}

const PERIOD_MS = 10_000;
// Limits chosen at enqueue may be one per customer.
const LIMITS_MAX = 1_000;

/** Reports full limits: at most once per limit and period. */
export class FullLimits {
  readonly #o: FullLimitsOptions;
  /** When each limit was last reported, oldest first. Totals and keys of one limit are apart. */
  readonly #toldMs = new Map<string, number>();
  readonly #reading = new Set<Promise<void>>();

  constructor(options: FullLimitsOptions) {
    this.#o = options;
  }

  claimed(tasks: readonly ClaimedTask[]): void {
    const full = tasks.flatMap((task) => this.#fullFor(task));
    if (full.length > 0) this.#tell(full);
  }

  /** Resolves when everything found so far has been reported. */
  async idle(): Promise<void> {
    await Promise.all(this.#reading);
  }

  #fullFor(task: ClaimedTask): Full[] {
    const { passed, stream, claim, attempt } = task;
    const handler = this.#o.handlers.get(stream);
    if (passed === undefined || handler === undefined) return [];
    const { waitMs } = passed;
    // A limit that was full before the task was due did not delay it.
    const delayed = passed.limits.filter(({ fullMs }) => waitMs > fullMs);
    const due = delayed.filter(({ limit, perKey }) => this.#isDue(`${limit} ${perKey}`));
    const { type, queue } = handler.contract;
    const about = { id: claim.id, type, queue, attempt, worker: this.#o.worker, waitMs: waitMs < 0 ? null : waitMs };
    return due.map(({ limit, perKey }) => ({ limit, event: { ...about, perKey } }));
  }

  #isDue(key: string): boolean {
    const nowMs = this.#o.clock.now();
    const toldMs = this.#toldMs.get(key);
    if (toldMs !== undefined && nowMs - toldMs < PERIOD_MS) return false;
    this.#toldMs.delete(key);
    const oldest = this.#toldMs.size < LIMITS_MAX ? undefined : this.#toldMs.keys().next().value;
    if (oldest !== undefined) this.#toldMs.delete(oldest);
    this.#toldMs.set(key, nowMs);
    return true;
  }

  #tell(full: readonly Full[]): void {
    const { log, names } = this.#o;
    const reading = names([...new Set(full.map(({ limit }) => limit))])
      .then((known) => this.#emit(full, known))
      .catch((e: unknown) => tellTrouble(log, "the names of full limits could not be read", e))
      .finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }

  #emit(full: readonly Full[], names: ReadonlyMap<number, string>): void {
    for (const { limit, event } of full) {
      const name = names.get(limit);
      // A limit that was removed meanwhile has no name.
      if (name !== undefined) this.#o.events.emit("limitFull", { ...event, limit: name });
    }
  }
}
