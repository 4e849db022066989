import type { Claim } from "../core/claim.js";
import type { Clock, Logger } from "../core/ports.js";
import { tellTrouble } from "../postgres/errors.js";
import type { TaskFate } from "../postgres/inspect.js";
import type { Settlement } from "../postgres/settle.js";
import type { ClaimedTask } from "../postgres/step.js";
import type { Events, StalledEvent } from "./events.js";
import type { AnyHandler, Execution } from "./execution.js";
import { FullLimits } from "./full-limits.js";

interface ReportsOptions {
  readonly events: Events;
  /** The name of the worker. */
  readonly worker: string;
  readonly handlers: ReadonlyMap<number, AnyHandler>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Reads what became of tasks. */
  readonly fates: (ids: readonly string[]) => Promise<readonly TaskFate[]>;
  readonly limitNames: (limits: readonly number[]) => Promise<ReadonlyMap<number, string>>;
}

/** An execution that has ended, until the database has recorded its outcome. */
interface Ended {
  readonly execution: Execution;
  readonly durationMs: number;
  readonly error: unknown;
}

/** An outcome that the database has recorded. */
interface Recorded extends Ended {
  readonly settlement: Settlement;
}

/**
 * Reports outcomes to listeners, after the database has recorded them: an outcome that it refused, or that was lost
 * with its lease, is not reported. Without a listener nothing is kept and nothing is read.
 */
export class Reports {
  readonly #o: ReportsOptions;
  readonly #events: Events;
  /** By claim, because claims go with an outcome until it is recorded. Entries of lost outcomes are collected. */
  readonly #ended = new WeakMap<Claim, Ended>();
  readonly #reading = new Set<Promise<void>>();
  readonly #fullLimits: FullLimits;

  constructor(options: ReportsOptions) {
    this.#o = options;
    this.#events = options.events;
    this.#fullLimits = new FullLimits({ ...options, names: options.limitNames });
  }

  /** Whether claims must report the limits that their tasks passed. */
  get wantsLimits(): boolean {
    return this.#events.wants("limitFull");
  }

  get #wantsOthers(): boolean {
    return this.#events.wants("failed") || this.#events.wants("retrying") || this.#events.wants("cancelled");
  }

  /** An execution has returned. */
  returned(execution: Execution): void {
    // guard: nothing is kept without a listener -> test/worker/reports.test.ts: "without a listener nothing is kept, read or created"
    if (/* guard:unheard */ this.#events.wants("succeeded") /* end */) this.#keep(execution, undefined);
  }

  /** An execution has ended without success, for this reason. */
  threw(execution: Execution, e: unknown): void {
    if (this.#wantsOthers) this.#keep(execution, execution.aborted ?? e);
  }

  #keep(execution: Execution, error: unknown): void {
    this.#ended.set(execution.claim, { execution, durationMs: this.#durationMs(execution), error });
  }

  /** A handler has exceeded its timeout, or goes on although its signal was aborted. */
  stalled(execution: Execution, cause: StalledEvent["cause"]): void {
    if (!this.#events.wants("stalled")) return;
    const about = this.#about(execution, this.#durationMs(execution));
    this.#events.emit("stalled", { ...about, cause, abortCode: execution.aborted?.code ?? "timeout" });
  }

  /** A transaction has committed, and with it the success of its execution. */
  committed(execution: Execution): void {
    if (!this.#events.wants("succeeded")) return;
    this.#events.emit("succeeded", this.#about(execution, this.#durationMs(execution)));
  }

  /** A statement with these successes was answered. */
  succeeded(items: readonly { readonly claim: Claim }[], refused: number): void {
    if (!this.#events.wants("succeeded") || refused === items.length) return;
    const ended = items.flatMap(({ claim }) => this.#take(claim));
    // guard: a refused success is not reported -> test/worker/reports.test.ts: "of a statement with refused successes only those are reported that the database has recorded"
    if (/* guard:refused */ refused === 0 /* end */) this.#tellSucceeded(ended);
    // The reply says how many were refused, not which.
    else if (ended.length === items.length) this.#read(ended, (fates) => this.#unrefused(ended, fates, refused));
  }

  /** A statement with these outcomes was answered; `recorded` has the ids of those that the database recorded. */
  settled(items: readonly Settlement[], recorded: readonly string[]): void {
    if (!this.#wantsOthers) return;
    const ids = new Set(recorded);
    const open: Recorded[] = [];
    for (const settlement of items) {
      const [ended] = this.#take(settlement.claim);
      // guard: a lost outcome is not reported -> test/worker/reports.test.ts: "an outcome that the database refused is not reported"
      if (ended === undefined /* guard:lost */ || !ids.has(settlement.claim.id) /* end */) continue;
      if (settlement.kind === "fail") this.#tellFailed(ended);
      else if (settlement.kind === "cancel") this.#tellCancelled(ended, reasonOf(settlement));
      else if (this.#isOpen(settlement.kind)) open.push({ ...ended, settlement });
    }
    if (open.length > 0) this.#read(open, (fates) => open.forEach((one) => this.#tellFate(one, fates)));
  }

  /** Tasks were claimed, with the limits they passed. */
  claimed(tasks: readonly ClaimedTask[]): void {
    if (this.wantsLimits) this.#fullLimits.claimed(tasks);
  }

  /** Resolves when everything recorded so far has been reported. */
  async idle(): Promise<void> {
    await Promise.all([...this.#reading, this.#fullLimits.idle()]);
  }

  /** Whether only the database knows the outcome: it knows the attempts left, and whether a cancel was requested. */
  #isOpen(kind: Settlement["kind"]): boolean {
    return kind === "retry" || kind === "invalid" || this.#events.wants("cancelled");
  }

  #read(ended: readonly Ended[], tell: (fates: ReadonlyMap<string, TaskFate>) => void): void {
    const reading = this.#o
      .fates(ended.map(({ execution }) => execution.claim.id))
      .then((fates) => tell(new Map(fates.map((fate) => [fate.id, fate]))))
      .catch((e: unknown) => tellTrouble(this.#o.log, "events of recorded outcomes could not be emitted", e))
      .finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }

  /** If as many as were refused have not succeeded, the others were recorded. Else it is unknown which were. */
  #unrefused(ended: readonly Ended[], fates: ReadonlyMap<string, TaskFate>, refused: number): void {
    const ours = ended.filter(({ execution }) => fateOf(execution, fates)?.state === "succeeded");
    if (ended.length - ours.length === refused) this.#tellSucceeded(ours);
  }

  #tellFate(one: Recorded, fates: ReadonlyMap<string, TaskFate>): void {
    const { execution, settlement, error, durationMs } = one;
    const fate = fateOf(execution, fates);
    if (fate?.state === "cancelled") return this.#tellCancelled(one, fate.reason);
    if (settlement.kind !== "retry" && settlement.kind !== "invalid") return;
    if (fate?.state === "failed") return this.#tellFailed(one);
    // The task may already run again.
    const now = fates.get(execution.claim.id);
    const runAt = now?.state === "scheduled" ? now.runAt : null;
    const willRetryAt = runAt ?? new Date(Date.now() + settlement.delayMs);
    this.#events.emit("retrying", { ...this.#about(execution, durationMs), error, willRetryAt });
  }

  #tellSucceeded(all: readonly Ended[]): void {
    for (const { execution, durationMs } of all) this.#events.emit("succeeded", this.#about(execution, durationMs));
  }

  #tellFailed({ execution, durationMs, error }: Ended): void {
    this.#events.emit("failed", { ...this.#about(execution, durationMs), error });
  }

  #tellCancelled({ execution, durationMs }: Ended, reason: string | null): void {
    this.#events.emit("cancelled", { ...this.#about(execution, durationMs), reason });
  }

  #take(claim: Claim): Ended[] {
    const ended = this.#ended.get(claim);
    this.#ended.delete(claim);
    return ended === undefined ? [] : [ended];
  }

  #durationMs({ startedMs }: Execution): number {
    return Math.round(this.#o.clock.now() - startedMs);
  }

  #about({ claim, handler, attempt }: Execution, durationMs: number) {
    const { type, queue } = handler.contract;
    return { id: claim.id, type, queue, attempt, durationMs, worker: this.#o.worker };
  }
}

/** The fate, if this attempt was the last. */
function fateOf({ claim, attempt }: Execution, fates: ReadonlyMap<string, TaskFate>): TaskFate | undefined {
  const fate = fates.get(claim.id);
  return fate?.attempt === attempt ? fate : undefined;
}

function reasonOf({ outcome }: Settlement): string | null {
  return (JSON.parse(outcome) as { reason?: string | null }).reason ?? null;
}
