import { BACKLOG_MIN, ClaimPolicy, NO_CLAIM, type ClaimPlan, type Pressed } from "../core/claim-policy.js";
import { isSluiceError } from "../core/error.js";
import { isUnanswered, tellTrouble } from "../postgres/errors.js";
import { step, type Spot, type StepReply } from "../postgres/step.js";
import type { ClaimerOptions } from "./claimer-options.js";
import { noMeter, tellReply, type Meter } from "./metrics/meter.js";
import type { Completion, Parcel } from "./outbox.js";
import { Poll } from "./poll.js";
import { ClaimCapacity } from "./pressure/claim-capacity.js";
import { IdleConnections } from "./idle-connections.js";
import type { Session } from "./session.js";
import { Settler } from "./settler.js";
import { Shares } from "./shares.js";
import { SETTLE_MAX, Splitter } from "./split.js";
import { Spots } from "./spots.js";
import { newToken } from "./token.js";
import { Trouble } from "./trouble.js";
import { StreamRotation } from "./rotation.js";

const NOT_PRESSED: Pressed = { memory: false, taskDuration: false, eventLoopDelay: false };

/** The claim that goes with a statement, and where the database looks for tasks. */
interface StepClaim {
  readonly plan: ClaimPlan;
  readonly spots: readonly Spot[];
}

const SETTLE_ONLY: StepClaim = { plan: NO_CLAIM, spots: [] };

/**
 * Keeps steps in flight. Outcomes that finish in the meantime go into the next statement, which also claims.
 * ClaimPolicy decides when to claim and how many.
 */
export class Claimer {
  readonly #o: ClaimerOptions;
  readonly #idleConnections: IdleConnections;
  readonly #trouble = new Trouble();
  readonly #spots: Spots;
  readonly #shares = new Shares(SETTLE_MAX);
  readonly #meter: Meter;
  readonly #policy: ClaimPolicy;
  readonly #pressed: () => Pressed;
  readonly #capacity: ClaimCapacity;
  readonly #rotation: StreamRotation;
  readonly #splitter: Splitter;
  readonly #settler: Settler;
  #accepting = false;
  #stopped = false;
  /** A part of a refused statement is in flight. One at a time, independent of other statements. */
  #mending = false;
  #blockedUntil: NodeJS.Timeout | null = null;
  readonly poll: Poll;
  #scheduled = false;
  #waiters: (() => void)[] = [];
  claims = 0;
  acquired = 0;
  refused = 0;

  constructor(options: ClaimerOptions) {
    this.#o = options;
    this.#meter = options.meter ?? noMeter;
    this.#pressed = options.pressed ?? (() => NOT_PRESSED);
    this.#policy = new ClaimPolicy({
      permitsMax: options.permits.max,
      batchSize: options.claimBatchSize,
      notified: options.bell,
    });
    this.#capacity = new ClaimCapacity({ ...options, policy: this.#policy });
    this.#rotation = new StreamRotation(options.streams.length);
    this.#idleConnections = new IdleConnections({ ...options, meter: this.#meter });
    this.#spots = new Spots(options.clock, () => this.wake());
    const stopped = (): boolean => this.#stopped;
    this.#splitter = new Splitter({ ...options, stopped, onDue: () => this.pump() });
    this.#settler = new Settler({
      ...options,
      meter: this.#meter,
      idleConnections: this.#idleConnections,
      splitter: this.#splitter,
      onRefused: (tasks) => (this.refused += tasks),
      onTrouble: (e) => this.#troubled("an outcome could not be recorded", e),
      onOver: () => this.wake(),
    });
    this.poll = new Poll({ ...options, asleep: () => this.#policy.asleep, onPoll: () => this.wake() });
  }

  start(): void {
    this.#accepting = true;
    this.poll.start();
  }

  /** Stops claiming. Tasks that are already claimed still settle. */
  pause(): void {
    this.#accepting = false;
  }

  resume(): void {
    this.#accepting = true;
    this.wake();
  }

  stop(): void {
    this.#stopped = true;
    this.#accepting = false;
    this.poll.stop();
    if (this.#blockedUntil !== null) clearTimeout(this.#blockedUntil);
    this.#blockedUntil = null;
    this.#spots.stop();
    this.#o.outbox.giveUp();
  }

  /** There may be tasks to claim. */
  wake(): void {
    this.#policy.wake();
    this.pump();
  }

  /** Handles a wake notification: `tasks` tasks were enqueued for this worker. */
  ring(tasks: number): void {
    // Any client can send a notification, so a payload that is not a number counts as one task.
    const told = Number.isSafeInteger(tasks) && tasks > 0 ? tasks : 1;
    // Check memory before claiming many tasks. For a few, claim first: the check takes a third as long as their claim.
    if (told >= BACKLOG_MIN) this.#o.onBusy?.();
    this.#policy.announce(told);
    this.pump();
    this.#o.onBusy?.();
  }

  /** A new session is registered in the database and awake. */
  sessionBegan(): void {
    this.#policy.sessionBegan();
    this.#trouble.over();
    this.pump();
  }

  /** Outcomes arrive in bursts: pump once per burst. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#shares.tickEnded(this.#o.executions.completed);
      this.pump();
    });
  }

  /** Resolves when nothing is in flight and no outcome is waiting. */
  async settled(): Promise<void> {
    while (!this.#quiet()) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  pump(): void {
    if (this.#stopped || this.#blockedUntil !== null) return;
    this.#settler.pump();
    if (!this.#mending && this.#idleConnections.count > 0) this.#sendRefused();
    while (this.#idleConnections.count > 0 && this.#stepOnce());
    this.#idleConnections.wanted(this.#o.outbox.size > 0);
    if (this.#quiet()) for (const tell of this.#waiters.splice(0)) tell();
  }

  #quiet(): boolean {
    const { outbox, permits } = this.#o;
    return outbox.size === 0 && this.#idleConnections.allIdle && !this.#settler.busy && permits.inUse === 0;
  }

  /** Sends one step if there is a reason to. */
  #stepOnce(): boolean {
    const parcel = this.#nextParcel();
    const session = parcel?.session ?? this.#o.current();
    if (session === null) return false;
    const claim = this.#nextClaim(parcel, session);
    if (parcel === null && claim.plan.want === 0) return false;
    void this.#send(session, parcel, claim);
    return true;
  }

  #nextClaim(parcel: Parcel<Completion> | null, session: Session): StepClaim {
    if (!this.#accepting || session !== this.#o.current()) return SETTLE_ONLY;
    const plan = this.#policy.next({
      permitsFree: this.#o.permits.free,
      settling: parcel?.items.length ?? 0,
      slotsReleased: parcel !== null && this.#policy.fetchesAnnounced ? slotsHeld(parcel.items) : 0,
      payloadRoom: this.#capacity.nextPayloadRoom(),
      sizeMax: this.#splitter.claims.size,
      pressed: this.#pressed(),
    });
    const spots = plan.want > 0 ? this.#spots.next() : null;
    return spots === null ? SETTLE_ONLY : { plan, spots };
  }

  get connections(): IdleConnections["use"] {
    return this.#idleConnections.use;
  }

  /** How many more tasks fit, by permits and by bytes. */
  get room(): number {
    return this.#capacity.room;
  }

  /** What currently stops claims. */
  get stops(): ClaimCapacity["stops"] {
    return this.#capacity.stops;
  }

  #nextParcel(): Parcel<Completion> | null {
    const { outbox } = this.#o;
    const share = this.#shares.of(outbox.successes, this.#idleConnections.count);
    return share === 0 ? null : outbox.takeSuccesses(Math.min(share, this.#splitter.settles.size));
  }

  async #send(session: Session, parcel: Parcel<Completion> | null, { plan, spots }: StepClaim): Promise<void> {
    const { permits } = this.#o;
    const connection = this.#idleConnections.take()!;
    const { want, extra } = plan;
    this.#policy.sent(plan);
    this.#capacity.asked += want;
    permits.take(extra);
    let reply: StepReply | null = null;
    const token = newToken();
    session.asking.add(token);
    if (parcel !== null) session.sent.add(parcel.items);
    const sentMs = this.#o.clock.now();
    try {
      const call = { worker: session.id, token, want, from: this.#rotation.next() };
      const { streams, keepHistory } = this.#o;
      const meters = this.#meter !== noMeter || this.#o.reports?.wantsLimits === true;
      const successes = parcel?.items ?? [];
      reply = await step(connection, { ...call, streams, successes, keepHistory, tells: plan.reports, spots, meters });
    } catch (e) {
      permits.give(extra);
      if (plan.reports && session === this.#o.current()) this.#policy.reportLost();
      this.#failed(session, parcel, want, e);
    }
    this.#policy.ended(plan);
    this.#capacity.asked -= want;
    session.asking.delete(token);
    if (parcel !== null) session.sent.delete(parcel.items);
    if (reply !== null) {
      if (want > 0) this.#spots.learn(spots, reply, want);
      this.#o.outbox.answered(parcel?.items ?? [], reply.refused);
      tellReply(this.#meter, reply, { want, parcel, sentMs, nowMs: this.#o.clock.now() });
      this.#received(session, reply, plan, parcel?.items.length ?? 0);
      if (parcel !== null) this.#o.reports?.succeeded(parcel.items, reply.refused);
      this.#o.reports?.claimed(reply.claimed);
    }
    this.#idleConnections.put(connection, reply === null);
    // Not immediately: tasks that take no time end in this tick of the event loop, and their outcomes go into one
    // statement with those that wait.
    this.schedule();
  }

  #received(session: Session, reply: StepReply, plan: ClaimPlan, settling: number): void {
    const { permits, executions, log } = this.#o;
    const { claimed, refused } = reply;
    this.#trouble.over();
    if (settling > 0) this.#splitter.taken();
    if (reply.unplaced) this.#o.onUnplaced();
    session.settling -= settling;
    permits.give(settling + plan.extra - claimed.length);
    if (refused > 0) {
      this.refused += refused;
      log.warn("outcomes were refused: the claims of their tasks were lost", { tasks: refused });
    }
    if (plan.want === 0) return;
    this.claims++;
    this.acquired += claimed.length;
    this.#o.payloads.learn(claimed);
    if (session === this.#o.current()) this.#learn(plan, claimed.length);
    this.#shares.starting(claimed.length, executions.completed);
    if (claimed.length === 0) return;
    // Call this before a handler runs, because the handler may block the event loop: from now on a stall may be the
    // fault of a task.
    // guard: a worker is watched before its handlers run -> test/worker/claim.test.ts: "the lease is checked at the faster rate before the first handler of a claim runs"
    /* guard:watched */ this.#o.onBusy?.(); /* end */
    for (const task of claimed) {
      // The lease may have expired while the reply was in transit. Then these tasks no longer belong to this worker.
      // guard: a claim that is answered after the lease was lost is not run -> test/worker/properties.test.ts: "an execution aborted for a lost lease records nothing, and is aborted before its lease runs out"
      if (/* guard:lost */ !this.#o.holds(session) /* end */) permits.give(1);
      else executions.start(task, session);
    }
    this.poll.changed();
  }

  #learn(plan: ClaimPlan, claimed: number): void {
    const { permits, executions, clock } = this.#o;
    this.#policy.learn(plan, claimed, { inHand: permits.inUse, completed: executions.completed, nowMs: clock.now() });
  }

  /** Sends the rest of a refused statement as it is, without claiming anything. */
  #sendRefused(): void {
    const piece = this.#o.outbox.takeRefusedSuccesses(this.#o.clock.now());
    if (piece === null) return;
    this.#mending = true;
    void this.#send(piece.session, piece, SETTLE_ONLY).finally(() => (this.#mending = false));
  }

  #failed(session: Session, parcel: Parcel<Completion> | null, want: number, e: unknown): void {
    const { outbox } = this.#o;
    this.#meter.stepFailed();
    if (this.#splitter.successes(parcel, want, e)) {
      // The database refused the outcomes, not the claim that went with them.
      if (want > 0) this.#policy.wake();
      return;
    }
    const unanswered = isUnanswered(e);
    if (parcel !== null && unanswered) outbox.doubt(parcel.items);
    // guard: an outcome leaves when its statement was answered -> test/worker/properties.test.ts: "every claimed task is settled, released or lost with its lease, and none is settled twice under one claim"
    if (parcel !== null)
      this.#splitter.putBack(parcel, () => /* guard:answered */ outbox.putBackSuccesses(parcel) /* end */);
    if (isSluiceError(e, "lease_lost")) return this.#o.onLost(session);
    // guard: a lost reply puts its session in doubt -> test/worker/properties.test.ts: "tasks of a lost claim reply are released, and do not count as a crash"
    /* guard:doubt */ if (want > 0 && unanswered && !this.#stopped) this.#o.onDoubt(session); /* end */
    this.#troubled("a claim or settle failed", e);
  }

  #troubled(what: string, e: unknown): void {
    // guard: one that was stopped tells of nothing -> test/worker/shutdown.test.ts: "a stopped claimer sends no statement and logs nothing"
    /* guard:stopped */ if (this.#stopped) return; /* end */
    tellTrouble(this.#o.log, what, e);
    this.#block();
  }

  #block(): void {
    if (this.#stopped) return;
    this.#idleConnections.wanted(false);
    this.#blockedUntil ??= setTimeout(() => {
      this.#blockedUntil = null;
      this.wake();
    }, this.#trouble.nextDelayMs());
  }
}

function slotsHeld(items: readonly Completion[]): number {
  return items.reduce((sum, { holds }) => sum + holds, 0);
}
