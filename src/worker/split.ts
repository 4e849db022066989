import { isSluiceError } from "../core/error.js";
import type { Clock, Logger } from "../core/ports.js";
import { sqlstate, tellTrouble } from "../postgres/errors.js";
import { tellLost, type Outcome } from "./failure.js";
import type { Completion, Outbox, Parcel } from "./outbox.js";
import type { Permits } from "./permits.js";
import { Portion } from "./portion.js";
import { refusalOf, type Refusal } from "./refused.js";

interface SplitterOptions {
  readonly outbox: Outbox;
  readonly permits: Permits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly stopped: () => boolean;
  /** A part of a refused statement is due. */
  readonly onDue: () => void;
}

// The maximum number of outcomes in one statement.
export const SETTLE_MAX = 500;
// How often a statement that fails with a deadlock is sent before it is split.
const BUSY_MAX = 3;
const LOCK_TIMEOUT = "55P03";

/**
 * Handles outcomes whose statement failed. If the database is reachable and refuses them, one of them may be the cause:
 * they are sent in ever smaller statements, so that the others are recorded while claims continue.
 */
export class Splitter {
  readonly #o: SplitterOptions;
  /** How many tasks a statement may settle and claim: fewer while a statement_timeout cancels larger ones. */
  readonly settles: Portion;
  readonly claims: Portion;
  #busyInARow = 0;

  constructor(options: SplitterOptions) {
    this.#o = options;
    this.settles = new Portion(SETTLE_MAX, options.clock);
    this.claims = new Portion(Number.MAX_SAFE_INTEGER, options.clock);
  }

  /** Puts outcomes back. Outcomes of a lost session can no longer be recorded; their permits are returned. */
  putBack(parcel: Parcel<unknown>, put: () => void): void {
    // guard: what was being recorded is lost with its lease -> test/worker/properties.test.ts: "an execution aborted for a lost lease records nothing, and is aborted before its lease runs out"
    if (/* guard:lost */ !parcel.session.lost /* end */) return put();
    tellLost(parcel.items as readonly Outcome[]);
    this.#o.outbox.answered(parcel.items, parcel.items.length);
    parcel.session.settling -= parcel.items.length;
    this.#o.permits.give(parcel.items.length);
  }

  /** A step with these outcomes failed. Returns false if its contents are not the cause. */
  successes(parcel: Parcel<Completion> | null, want: number, e: unknown): boolean {
    if (want > 0 && refusalOf(e) === "timeout") this.claims.tooMuch(want);
    if (parcel === null) return false;
    const { outbox } = this.#o;
    return this.#split(parcel, e, (refusal, now) => outbox.refuseSuccesses(parcel, refusal, e, now));
  }

  others(parcel: Parcel<Outcome>, e: unknown): boolean {
    const { outbox } = this.#o;
    return this.#split(parcel, e, (refusal, now) => outbox.refuseOthers(parcel, refusal, e, now));
  }

  /** The database recorded outcomes. */
  taken(): void {
    this.#busyInARow = 0;
  }

  #split(parcel: Parcel<unknown>, e: unknown, put: (refusal: Refusal, nowMs: number) => number): boolean {
    const refusal = this.#refusal(parcel, e);
    if (refusal === null) return false;
    const nowMs = this.#o.clock.now();
    this.putBack(parcel, () => {
      const dueMs = put(refusal, nowMs);
      if (dueMs > nowMs) setTimeout(this.#o.onDue, dueMs - nowMs + 1).unref();
    });
    if (!this.#o.stopped()) this.#tell(parcel.items.length, refusal, e);
    return true;
  }

  #refusal(parcel: Parcel<unknown>, e: unknown): Refusal | null {
    const refusal = refusalOf(e);
    const tasks = parcel.items.length;
    if (refusal === "timeout" && tasks > 1) this.settles.tooMuch(tasks);
    // guard: a locked row does not stop claims -> test/worker/refused.test.ts: "a task whose row another transaction locks delays the claims of its worker by one lock timeout only"
    if (refusal !== "busy" || "tries" in parcel /* guard:lock-timeout */ || isLockTimeout(e) /* end */) return refusal;
    return ++this.#busyInARow < BUSY_MAX ? null : refusal;
  }

  #tell(tasks: number, refusal: Refusal, e: unknown): void {
    const words =
      tasks > 1
        ? "the database refused outcomes; they are sent again in smaller batches"
        : isLockTimeout(e)
          ? "another transaction holds the row of a task; its outcome is sent again"
          : ONE_REFUSED[refusal];
    tellTrouble(this.#o.log, words, e);
  }
}

const ONE_REFUSED: Record<Refusal, string> = {
  data: "the database refused an outcome; if this repeats, a note replaces its result or error",
  timeout: "a timeout cancelled the recording of an outcome; if this repeats and it is large, a note replaces it",
  busy: "the database was too busy to record an outcome; it is sent again",
  unknown: "the database refused an outcome; it is sent again",
};

/**
 * Another transaction holds a row for longer than any of the library's transactions do: waiting for it again would
 * delay everything else.
 */
function isLockTimeout(e: unknown): boolean {
  return isSluiceError(e, "database_busy") && sqlstate(e.cause) === LOCK_TIMEOUT;
}
