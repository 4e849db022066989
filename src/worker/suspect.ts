import type { Clock, Logger } from "../core/ports.js";
import { within } from "../core/within.js";
import { isReplyLost } from "../postgres/errors.js";
import type { Claimer } from "./claim.js";
import type { Executions } from "./executions.js";
import type { Heartbeat } from "./heartbeat.js";
import type { Meter } from "./metrics/meter.js";
import type { Permits } from "./permits.js";
import type { Session } from "./session.js";

interface SuspectOptions {
  readonly leaseMs: number;
  readonly permits: Permits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly meter: Meter;
  /** Whether the worker is neither starting nor stopping. */
  readonly running: () => boolean;
  /** Resolved late, because the parts refer to each other. */
  readonly parts: () => {
    readonly executions: Executions;
    readonly heartbeat: Heartbeat;
    readonly claimer: Claimer;
  } | null;
}

// A worker that does not drain within EMPTYING_LEASES leases leaves suspects to other workers for NO_SUSPECTS_LEASES
// leases.
const EMPTYING_LEASES = 2;
const NO_SUSPECTS_LEASES = 10;

/** Runs tasks that were executing at three crashes, each with nothing beside it. */
export class Suspects {
  readonly #o: SuspectOptions;
  #busy = false;
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  constructor(options: SuspectOptions) {
    this.#o = options;
  }

  /** Whether the worker is draining for a suspect, or running it. */
  get busy(): boolean {
    return this.#busy;
  }

  /** Drains the worker, then runs the suspect with nothing beside it. */
  async run(session: Session, id: string): Promise<void> {
    const { running, clock, leaseMs } = this.#o;
    const parts = this.#o.parts();
    if (parts === null || !running() || this.#busy) return;
    if (clock.now() < this.#notBeforeMs) return parts.heartbeat.releaseSuspect(session);
    // guard: nothing is claimed beside a suspect -> test/worker/properties.test.ts: "a suspect runs alone, and other tasks continue after it"
    this.#busy = true;
    /* guard:alone */ parts.claimer.pause(); /* end */
    try {
      if (!(await within(parts.claimer.settled(), EMPTYING_LEASES * leaseMs))) {
        this.#notBeforeMs = clock.now() + NO_SUSPECTS_LEASES * leaseMs;
        return await parts.heartbeat.releaseSuspect(session);
      }
      if (session.lost || session.doubtful || !running()) return;
      await this.#alone(parts, session, id);
    } finally {
      this.#busy = false;
      if (running()) parts.claimer.resume();
    }
  }

  async #alone(
    { executions, heartbeat, claimer }: NonNullable<ReturnType<SuspectOptions["parts"]>>,
    session: Session,
    id: string,
  ): Promise<void> {
    const { permits, log, meter, clock } = this.#o;
    const askedMs = clock.now();
    permits.take(1);
    const task = await heartbeat.claimSuspect(session, id).catch((e: unknown) => {
      // The session may hold the task although the reply was lost. As with any claim, this session then ends.
      if (isReplyLost(e)) heartbeat.doubt(session);
      return null;
    });
    if (task === null || !heartbeat.holds(session)) return permits.give(1);
    meter.claimed(1, clock.now() - askedMs);
    if (task.passed !== undefined) meter.passed(task.passed);
    log.warn("running a suspect task alone: it was running at three crashes", { task: id });
    executions.start(task, session);
    await claimer.settled();
  }
}
