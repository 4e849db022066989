import type { Logger } from "../core/ports.js";
import { isSluiceError } from "../core/error.js";
import { isReplyLost, tellTrouble } from "../postgres/fault.js";
import type { Line } from "../postgres/line.js";
import { settle, type Settlement } from "../postgres/settle.js";
import { step, type StepReply, type Success } from "../postgres/step.js";
import type { Crew } from "./crew.js";
import type { Outbox, Parcel } from "./outbox.js";
import { claimSize, type Permits } from "./permits.js";
import type { Session } from "./session.js";
import { newToken } from "./token.js";
import { Trouble } from "./trouble.js";

interface ClaimerOptions {
  /** One statement at a time on each. */
  readonly lines: readonly Line[];
  readonly streams: readonly number[];
  readonly permits: Permits;
  readonly outbox: Outbox;
  readonly crew: Crew;
  readonly batchMax: number;
  readonly pollIntervalMs: number;
  readonly keep: boolean;
  /** Whether a bell can wake us, so that it is worth telling that we sleep. */
  readonly bell: boolean;
  readonly log: Logger;
  /** The session that claims, or null while there is none. */
  readonly current: () => Session | null;
  /** A reply was lost; the session may hold what we have never seen. */
  readonly onDoubt: (session: Session) => void;
  /** The database says that the session's lease is gone. */
  readonly onLost: (session: Session) => void;
}

const SETTLE_MAX = 500;
// A full turn of the streams takes some steps, so that slots freed by one step are used by the next.
const STEPS_PER_TURN = 8;

/**
 * Keeps steps in flight: what has finished meanwhile goes into the next statement, which asks for as
 * many tasks as there are free permits. Appetite says what to do with free permits and nothing to
 * settle: `feast` (the last claim was full: use every line), `probe` (look once) or `none` (wait for
 * the poll or the bell).
 */
export class Claimer {
  readonly #o: ClaimerOptions;
  readonly #idleLines: Line[];
  readonly #trouble = new Trouble();
  #appetite: "none" | "probe" | "feast" = "probe";
  #bed: "awake" | "falling" | "asleep" = "awake";
  #rising = false;
  #accepting = false;
  #stopped = false;
  #settlingOthers = false;
  #blockedUntil: NodeJS.Timeout | null = null;
  #poll: NodeJS.Timeout | null = null;
  #scheduled = false;
  // Claims begin with one task and grow fourfold while they come back full: what arrives a few at a
  // time is shared among all who are awake, and a backlog gets full batches after three steps.
  #pace = 1;
  #steps = 0;
  #from = 1;
  #waiters: (() => void)[] = [];
  claims = 0;
  acquired = 0;
  refused = 0;

  constructor(options: ClaimerOptions) {
    this.#o = options;
    this.#idleLines = [...options.lines];
  }

  start(): void {
    this.#accepting = true;
    const tick = (): void => {
      this.#poll = setTimeout(tick, this.#o.pollIntervalMs * (0.9 + Math.random() * 0.2));
      this.wake();
    };
    tick();
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
    if (this.#poll !== null) clearTimeout(this.#poll);
    if (this.#blockedUntil !== null) clearTimeout(this.#blockedUntil);
    this.#poll = this.#blockedUntil = null;
  }

  /** There may be something to claim. */
  wake(): void {
    if (this.#appetite === "none") this.#appetite = "probe";
    this.pump();
  }

  /** A new session is awake in the database. */
  sessionBegan(): void {
    this.#bed = "awake";
    this.#rising = false;
    this.#trouble.over();
    this.wake();
  }

  /** Outcomes arrive in bursts: one pump for all of a burst. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.pump();
    });
  }

  /** Resolves when nothing is in flight and no outcome waits. */
  async settled(): Promise<void> {
    while (!this.#quiet()) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  pump(): void {
    if (this.#stopped || this.#blockedUntil !== null) return;
    if (this.#o.outbox.others > 0 && !this.#settlingOthers) this.#settleOthers();
    while (this.#idleLines.length > 0 && this.#stepOnce());
    if (this.#quiet()) for (const tell of this.#waiters.splice(0)) tell();
  }

  #quiet(): boolean {
    return (
      this.#o.outbox.size === 0 &&
      this.#idleLines.length === this.#o.lines.length &&
      !this.#settlingOthers &&
      this.#o.permits.inUse === 0
    );
  }

  /** Sends one step if there is a reason to. */
  #stepOnce(): boolean {
    const { outbox, permits, batchMax, current } = this.#o;
    const parcel = outbox.takeSuccesses(SETTLE_MAX);
    const session = parcel?.session ?? current();
    if (session === null) return false;
    const settling = parcel?.items.length ?? 0;
    const reason = settling > 0 ? !this.#leavesToBell(parcel!) : this.#mayClaim();
    const claiming = this.#accepting && session === current() && reason;
    const most = Math.min(batchMax, Math.max(settling, this.#pace));
    const want = claiming ? claimSize(permits.free, settling, most) : 0;
    if (settling === 0 && want === 0) return false;
    if (settling === 0 && this.#appetite === "probe") this.#appetite = "none";
    void this.#send(session, parcel, want);
    return true;
  }

  /**
   * Asleep, with nothing freed by what it settles, a worker waits for the bell, which picks one of all
   * sleepers. Else whoever has much in hand would look most often, and take most of what comes.
   */
  #leavesToBell(parcel: Parcel<Success>): boolean {
    return this.#bed === "asleep" && parcel.items.every((success) => success.plain);
  }

  #mayClaim(): boolean {
    if (this.#appetite === "none") return false;
    return this.#appetite === "feast" || this.#idleLines.length === this.#o.lines.length;
  }

  async #send(session: Session, parcel: Parcel<Success> | null, want: number): Promise<void> {
    const { permits } = this.#o;
    const line = this.#idleLines.pop()!;
    const settling = parcel?.items.length ?? 0;
    const extra = Math.max(0, want - settling);
    permits.take(extra);
    const falling = want > 0 && settling === 0 && this.#bed === "falling";
    const rising = this.#rising;
    this.#rising = false;
    let reply: StepReply | null = null;
    const token = newToken();
    session.asking.add(token);
    if (parcel !== null) session.sent.add(parcel.items);
    try {
      const call = { worker: session.id, token, claim: want, from: this.#nextFrom() };
      const asleep = rising ? false : falling ? true : null;
      const { streams, keep } = this.#o;
      const successes = parcel?.items ?? [];
      reply = await step(line, { ...call, streams, successes, keep, asleep });
    } catch (e) {
      permits.give(extra);
      this.#failed(session, parcel, want, e);
    }
    session.asking.delete(token);
    if (parcel !== null) session.sent.delete(parcel.items);
    if (reply !== null) this.#received(session, reply, { want, settling, extra, falling });
    this.#idleLines.push(line);
    this.pump();
  }

  #received(
    session: Session,
    reply: StepReply,
    sent: { want: number; settling: number; extra: number; falling: boolean },
  ): void {
    const { permits, crew, log } = this.#o;
    const { claimed, refused } = reply;
    this.#trouble.over();
    session.settling -= sent.settling;
    permits.give(sent.settling + sent.extra - claimed.length);
    if (refused > 0) {
      this.refused += refused;
      log.warn("results came too late: their claims were lost", { tasks: refused });
    }
    if (sent.want === 0) return;
    this.claims++;
    this.acquired += claimed.length;
    this.#digest(claimed.length, sent);
    for (const task of claimed) {
      // The lease may have run out while the reply was on its way; then these are not ours.
      if (session.lost) permits.give(1);
      else crew.start(task, session);
    }
  }

  /** What the size of a claim says about the next. */
  #digest(claimed: number, sent: { want: number; settling: number; falling: boolean }): void {
    this.#pace =
      claimed === sent.want
        ? Math.min(this.#o.batchMax, 4 * Math.max(claimed, this.#pace))
        : Math.max(1, claimed);
    if (claimed > 0) {
      if (this.#bed !== "awake") this.#rising = true;
      this.#bed = "awake";
      this.#appetite =
        claimed === sent.want ? "feast" : this.#appetite === "feast" ? "probe" : this.#appetite;
      return;
    }
    if (this.#appetite === "feast") this.#appetite = "none";
    if (!this.#o.bell || this.#idleLines.length + 1 < this.#o.lines.length) return;
    // Nothing to do: tell that we sleep, then look once more, because an enqueue that committed in
    // between did not see us asleep and rang no bell.
    if (sent.falling) this.#bed = "asleep";
    else if (this.#bed === "awake") this.#bed = "falling";
    else return;
    this.#appetite = "probe";
  }

  #failed(session: Session, parcel: Parcel<Success> | null, want: number, e: unknown): void {
    const { outbox, log } = this.#o;
    if (parcel !== null) this.#keepOrForget(parcel, () => outbox.putBackSuccesses(parcel));
    if (isSluiceError(e, "lease_lost")) return this.#o.onLost(session);
    if (this.#stopped) return;
    tellTrouble(log, "the database did not take a step", e);
    if (want > 0 && isReplyLost(e)) this.#o.onDoubt(session);
    this.#block();
  }

  /** Outcomes of a session that is lost cannot be recorded any more; their permits come back. */
  #keepOrForget(parcel: Parcel<unknown>, putBack: () => void): void {
    if (!parcel.session.lost) return putBack();
    parcel.session.settling -= parcel.items.length;
    this.#o.permits.give(parcel.items.length);
  }

  #block(): void {
    if (this.#stopped) return;
    this.#blockedUntil ??= setTimeout(() => {
      this.#blockedUntil = null;
      this.wake();
    }, this.#trouble.nextDelayMs());
  }

  #settleOthers(): void {
    const parcel = this.#o.outbox.takeOthers(SETTLE_MAX);
    const line = this.#idleLines.pop();
    if (parcel === null || line === undefined) {
      if (parcel !== null) this.#o.outbox.putBackOthers(parcel);
      return;
    }
    this.#settlingOthers = true;
    void this.#sendOthers(line, parcel).finally(() => {
      this.#settlingOthers = false;
      this.#idleLines.push(line);
      // A failure may have handed its slots to a waiter of ours.
      this.wake();
    });
  }

  async #sendOthers(line: Line, parcel: Parcel<Settlement>): Promise<void> {
    const { permits, outbox, log } = this.#o;
    const { session, items } = parcel;
    session.sent.add(items);
    try {
      const refused = await settle(line, session.id, items);
      this.refused += refused;
      session.settling -= items.length;
      permits.give(items.length);
    } catch (e) {
      this.#keepOrForget(parcel, () => outbox.putBackOthers(parcel));
      if (isSluiceError(e, "lease_lost")) return this.#o.onLost(session);
      if (this.#stopped) return;
      tellTrouble(log, "the database did not take an outcome", e);
      this.#block();
    } finally {
      session.sent.delete(items);
    }
  }

  #nextFrom(): number {
    if (++this.#steps % STEPS_PER_TURN === 0)
      this.#from = 1 + Math.floor(Math.random() * this.#o.streams.length);
    return this.#from;
  }
}
