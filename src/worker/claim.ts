import { BatchSize } from "../core/batch-size.js";
import { RISE } from "../core/claim-size.js";
import { isSluiceError } from "../core/error.js";
import { isUnanswered, tellTrouble } from "../postgres/fault.js";
import { step, type Spot, type StepReply } from "../postgres/step.js";
import type { ClaimerOptions } from "./claimer-options.js";
import { noMeter, tellReply, type Meter } from "./meter.js";
import type { Completion, Parcel } from "./outbox.js";
import { Poll } from "./poll.js";
import { Valve } from "./pressure/valve.js";
import { Rack } from "./rack.js";
import type { Session } from "./session.js";
import { Settler } from "./settler.js";
import { Shares } from "./shares.js";
import { SETTLE_MAX, Splitter } from "./split.js";
import { Spots } from "./spots.js";
import { newToken } from "./token.js";
import { Trouble } from "./trouble.js";
import { Turn } from "./turn.js";

/**
 * Keeps steps in flight: what has finished meanwhile goes into the next statement, which asks for as
 * many tasks as there are free permits. With free permits and nothing to settle, a claim is sent
 * while the last one came back full (`feast`, on every line), or once when there is a reason to look
 * (`curious`); else the poll and the bell decide.
 *
 * A worker whose claim came back short tells that it sleeps, so that an enqueue rings. It stays asleep
 * while it works off what the bell and its own settles bring, and fetches just that: else whoever is
 * quickest, or has most in hand, takes what others were called for. It rises for a backlog, or when it
 * has no permit left, so that the bell goes to somebody else.
 */
export class Claimer {
  readonly #o: ClaimerOptions;
  readonly #rack: Rack;
  readonly #trouble = new Trouble();
  readonly #spots: Spots;
  readonly #shares = new Shares(SETTLE_MAX);
  readonly #meter: Meter;
  readonly #batch: BatchSize;
  readonly #valve: Valve;
  readonly #turn: Turn;
  readonly #splitter: Splitter;
  readonly #settler: Settler;
  #feast = false;
  #curious = true;
  #announced = 0;
  // What the database knows of us. Only one statement at a time changes it, or the replies could
  // come in another order than the changes.
  #asleep = false;
  #drowsy = false;
  #telling = false;
  /** Claims under way. */
  #claiming = 0;
  #accepting = false;
  #stopped = false;
  /** A part of a refused statement is under way: one at a time, beside everything else. */
  #mending = false;
  #blockedUntil: NodeJS.Timeout | null = null;
  readonly poll: Poll;
  #scheduled = false;
  // Claims begin with one task and grow fourfold while they come back full: what arrives a few at a
  // time is shared among all who are awake, and a backlog gets full batches after three steps.
  #pace = 1;
  #waiters: (() => void)[] = [];
  claims = 0;
  acquired = 0;
  refused = 0;

  constructor(options: ClaimerOptions) {
    this.#o = options;
    this.#meter = options.meter ?? noMeter;
    this.#batch = new BatchSize(options.claimBatchSize);
    this.#valve = new Valve({
      ...options,
      batchMax: () => this.#batch.max,
      backlog: () => this.#feast,
    });
    this.#turn = new Turn(options.streams.length);
    this.#rack = new Rack({ ...options, meter: this.#meter });
    this.#spots = new Spots(options.clock, () => this.wake());
    const stopped = (): boolean => this.#stopped;
    this.#splitter = new Splitter({ ...options, stopped, onDue: () => this.pump() });
    this.#settler = new Settler({
      ...options,
      meter: this.#meter,
      rack: this.#rack,
      splitter: this.#splitter,
      onRefused: (tasks) => (this.refused += tasks),
      onTrouble: (e) => this.#troubled("the database did not take an outcome", e),
      onOver: () => this.wake(),
    });
    this.poll = new Poll({ ...options, asleep: () => this.#asleep, onPoll: () => this.wake() });
  }

  start(): void {
    this.#accepting = true;
    this.poll.start();
  }

  /** No more claims; what is in hand is still settled. */
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

  /** There may be something to claim. */
  wake(): void {
    this.#curious = true;
    this.pump();
  }

  /** The bell: so many tasks were enqueued for us. */
  ring(tasks: number): void {
    // Anybody may notify: what is no number counts as one.
    const told = Number.isSafeInteger(tasks) && tasks > 0 ? tasks : 1;
    // A look at the memory comes before a claim of many. A few are claimed first: it takes a third as long as their claim.
    if (told >= RISE) this.#o.onBusy?.();
    // One full claim tells whether there is more.
    this.#announced = Math.min(this.#announced + told, this.#batch.max);
    this.pump();
    this.#o.onBusy?.();
  }

  /** A new session is awake in the database. */
  sessionBegan(): void {
    this.#asleep = this.#drowsy = false;
    this.#trouble.over();
    this.wake();
  }

  /** Outcomes arrive in bursts: one pump for all of a burst. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#shares.turnEnded(this.#o.crew.completed);
      this.pump();
    });
  }

  /** Resolves when nothing is in flight and no outcome waits. */
  async settled(): Promise<void> {
    while (!this.#quiet()) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  pump(): void {
    if (this.#stopped || this.#blockedUntil !== null) return;
    this.#settler.pump();
    if (!this.#mending && this.#rack.idle > 0) this.#sendRefused();
    while (this.#rack.idle > 0 && this.#stepOnce());
    this.#rack.wanted(this.#o.outbox.size > 0);
    if (this.#quiet()) for (const tell of this.#waiters.splice(0)) tell();
  }

  #quiet(): boolean {
    const { outbox, permits } = this.#o;
    return outbox.size === 0 && this.#rack.full && !this.#settler.busy && permits.inUse === 0;
  }

  /** Sends one step if there is a reason to. */
  #stepOnce(): boolean {
    const parcel = this.#nextParcel();
    const session = parcel?.session ?? this.#o.current();
    if (session === null) return false;
    const settling = parcel?.items.length ?? 0;
    const claiming = this.#accepting && session === this.#o.current();
    const errand = this.#onErrand();
    const most = this.#appetite(parcel, errand);
    let want = claiming ? Math.min(most, this.#valve.size(settling), this.#splitter.claims.size) : 0;
    const spots = want > 0 ? this.#spots.next() : [];
    if (spots === null) want = 0;
    if (settling === 0 && want === 0) return false;
    if (want > 0) {
      this.#curious = false;
      this.#announced = Math.max(0, this.#announced - want);
    }
    void this.#send(session, parcel, { want, errand, spots: spots ?? [] });
    return true;
  }

  /** The most to ask for: in place of what is settled, and more. */
  #appetite(parcel: Parcel<Completion> | null, errand: boolean): number {
    if (parcel === null && !this.#mayClaim()) return 0;
    // Awake, more than is settled, so that the reply tells whether there is more. On an errand just what
    // was announced, and what a settle of ours may let through.
    const more = errand ? this.#announced : Math.max(this.#pace, this.#announced);
    const items = parcel?.items ?? [];
    const instead = errand ? items.reduce((sum, { holds }) => sum + holds, 0) : items.length;
    return instead + more;
  }

  get lines(): Rack["use"] {
    return this.#rack.use;
  }

  /** How many more tasks fit, by permits and by bytes. */
  get room(): number {
    return this.#valve.room;
  }

  /** What stops claims just now. */
  get stops(): Valve["stops"] {
    return this.#valve.stops;
  }

  #nextParcel(): Parcel<Completion> | null {
    const { outbox } = this.#o;
    const share = this.#shares.of(outbox.successes, this.#rack.idle);
    return share === 0 ? null : outbox.takeSuccesses(Math.min(share, this.#splitter.settles.size));
  }

  #mayClaim(): boolean {
    if (this.#feast) return true;
    return this.#claiming === 0 && (this.#curious || this.#announced > 0);
  }

  /** Asleep, and called for a few at most: what else comes is for whom the bell calls. */
  #onErrand(): boolean {
    return this.#asleep && !this.#feast && !this.#curious && this.#announced < RISE;
  }

  /** Whether a claim of this size says, by coming back short or not, if we sleep. */
  #tells(want: number, extra: number): boolean {
    if (want === 0 || !this.#o.bell || this.#telling) return false;
    if (this.#asleep) return extra >= RISE || this.#valve.shutAfter(extra);
    // guard: who can take nothing is not asleep -> test/worker/pressure/worker.test.ts: "a worker that can take nothing more lets the bell ring for others, without a poll"
    return this.#drowsy /* guard:asleep */ && !this.#valve.shutAfter(0); /* end */
  }

  async #send(
    session: Session,
    parcel: Parcel<Completion> | null,
    { want, errand, spots }: { want: number; errand: boolean; spots: readonly Spot[] },
  ): Promise<void> {
    const { permits } = this.#o;
    const line = this.#rack.take()!;
    const settling = parcel?.items.length ?? 0;
    const extra = Math.max(0, want - settling);
    const tells = this.#tells(want, extra);
    if (tells) this.#telling = true;
    if (want > 0) this.#claiming++;
    this.#valve.asked += want;
    permits.take(extra);
    let reply: StepReply | null = null;
    const token = newToken();
    session.asking.add(token);
    if (parcel !== null) session.sent.add(parcel.items);
    const sentMs = this.#o.clock.now();
    try {
      const call = { worker: session.id, token, claim: want, from: this.#turn.next() };
      const { streams, keep } = this.#o;
      const meters = this.#meter !== noMeter;
      const successes = parcel?.items ?? [];
      reply = await step(line, { ...call, streams, successes, keep, tells, spots, meters });
    } catch (e) {
      permits.give(extra);
      // Who knows what it knows now: tell it again.
      if (tells && session === this.#o.current()) {
        this.#asleep = false;
        this.#drowsy = true;
      }
      this.#failed(session, parcel, want, e);
    }
    if (tells) this.#telling = false;
    if (want > 0) this.#claiming--;
    this.#valve.asked -= want;
    session.asking.delete(token);
    if (parcel !== null) session.sent.delete(parcel.items);
    if (reply !== null) {
      if (want > 0) this.#spots.learn(spots, reply, want);
      this.#o.outbox.answered(parcel?.items ?? [], reply.refused);
      tellReply(this.#meter, reply, { want, parcel, sentMs, nowMs: this.#o.clock.now() });
      this.#received(session, reply, { want, settling, extra, tells, errand });
    }
    this.#rack.put(line, reply === null);
    // Not at once: tasks that take no time end in this turn, and go into one statement with what waits.
    this.schedule();
  }

  #received(
    session: Session,
    reply: StepReply,
    sent: { want: number; settling: number; extra: number; tells: boolean; errand: boolean },
  ): void {
    const { permits, crew, log } = this.#o;
    const { claimed, refused } = reply;
    this.#trouble.over();
    if (sent.settling > 0) this.#splitter.taken();
    if (reply.unplaced) this.#o.onUnplaced();
    session.settling -= sent.settling;
    permits.give(sent.settling + sent.extra - claimed.length);
    if (refused > 0) {
      this.refused += refused;
      log.warn("results came too late: their claims were lost", { tasks: refused });
    }
    if (sent.want === 0) return;
    this.claims++;
    this.acquired += claimed.length;
    this.#o.payloads.learn(claimed);
    if (session === this.#o.current()) this.#digest(claimed.length, sent);
    this.#shares.starting(claimed.length, crew.completed);
    if (claimed.length === 0) return;
    // Before a handler runs, which may block the event loop: from now on standing still has somebody to blame.
    // guard: a worker is watched before its handlers run -> test/worker/claim.test.ts: "a worker is watched closely before the first handler of a claim runs"
    /* guard:watched */ this.#o.onBusy?.(); /* end */
    for (const task of claimed) {
      // The lease may have run out while the reply was on its way; then these are not ours.
      // guard: a claim that is answered after the lease was lost is not run -> test/worker/properties.test.ts: "an execution aborted for a lost lease records nothing, and is aborted before its lease runs out"
      if (/* guard:lost */ !this.#o.holds(session) /* end */) permits.give(1);
      else crew.start(task, session);
    }
    this.poll.changed();
  }

  /** What the size of a claim says about the next. */
  #digest(claimed: number, sent: { want: number; tells: boolean; errand: boolean }): void {
    const short = claimed < sent.want;
    this.#batch.learn({
      want: sent.want,
      claimed,
      inHand: this.#o.permits.inUse,
      completed: this.#o.crew.completed,
      nowMs: this.#o.clock.now(),
    });
    if (!sent.errand || short) {
      this.#feast = !short;
      this.#pace = short ? Math.max(1, claimed) : Math.min(this.#batch.max, 4 * Math.max(claimed, this.#pace));
    }
    if (sent.tells) {
      // Look once more: an enqueue that committed in between did not see us asleep and rang no bell.
      // Awake, nobody calls: a permit that came back meanwhile must not lie idle.
      if (!short || !this.#asleep) this.#curious = true;
      this.#asleep = short;
      this.#drowsy = false;
    } else if (short && !this.#asleep && this.#o.bell) {
      this.#drowsy = this.#curious = true;
    }
  }

  /** What is left of a statement that was refused, as it is: nothing is claimed with it. */
  #sendRefused(): void {
    const piece = this.#o.outbox.takeRefusedSuccesses(this.#o.clock.now());
    if (piece === null) return;
    this.#mending = true;
    const alone = { want: 0, errand: false, spots: [] };
    void this.#send(piece.session, piece, alone).finally(() => (this.#mending = false));
  }

  #failed(session: Session, parcel: Parcel<Completion> | null, want: number, e: unknown): void {
    const { outbox } = this.#o;
    this.#meter.stepFailed();
    // What was refused was not the look that went with it.
    if (this.#splitter.successes(parcel, want, e)) return void (this.#curious ||= want > 0);
    const unanswered = isUnanswered(e);
    if (parcel !== null && unanswered) outbox.doubt(parcel.items);
    // guard: an outcome leaves when its statement was answered -> test/worker/properties.test.ts: "every claimed task is settled, released or lost with its lease, and none twice under one claim"
    if (parcel !== null)
      this.#splitter.keep(parcel, () => /* guard:answered */ outbox.putBackSuccesses(parcel) /* end */);
    if (isSluiceError(e, "lease_lost")) return this.#o.onLost(session);
    // guard: a lost reply puts its session in doubt -> test/worker/properties.test.ts: "a lost claim reply is handed back and is no crash"
    /* guard:doubt */ if (want > 0 && unanswered && !this.#stopped) this.#o.onDoubt(session); /* end */
    this.#troubled("the database did not take a step", e);
  }

  #troubled(what: string, e: unknown): void {
    // guard: one that was stopped tells of nothing -> test/worker/shutdown.test.ts: "a claimer that was stopped sends nothing more and tells of nothing more"
    /* guard:stopped */ if (this.#stopped) return; /* end */
    tellTrouble(this.#o.log, what, e);
    this.#block();
  }

  #block(): void {
    if (this.#stopped) return;
    this.#rack.wanted(false);
    this.#blockedUntil ??= setTimeout(() => {
      this.#blockedUntil = null;
      this.wake();
    }, this.#trouble.nextDelayMs());
  }
}
