import type { PressureState } from "../core/pressure.js";
import {
  beat,
  claimSuspect,
  register,
  releaseSuspect,
  releaseUnknown,
  survived,
  unregister,
  type BeatReply,
} from "../postgres/heartbeat.js";
import { tellTrouble } from "../postgres/errors.js";
import type { ClaimedTask } from "../postgres/step.js";
import type { HeartbeatOptions } from "./heartbeat-options.js";
import { Session } from "./session.js";
import { newToken } from "./token.js";
import { Reconnect, Trouble } from "./trouble.js";

const BEATS_PER_LEASE = 3;
// A long lease must not delay what a heartbeat delivers, such as a cancel.
const BEAT_MS_MAX = 5_000;
// The interval while tasks are executing and workers are in reserve. Reserve workers relieve on-call workers whose last
// heartbeat reports them busy.
const BUSY_BEAT_MS_MAX = 1_000;
// The interval in reserve while tasks are executing: a cancel must reach a handler within 500 ms, and only a heartbeat
// delivers it.
const RESERVE_BEAT_MS_MAX = 350;
// The worker stops before the database declares it dead: by a tenth of the lease, at least 100 ms.
const MARGIN_SHARE = 0.1;
const MARGIN_MS_MIN = 100;
// A session that stalled for this share of a lease since its last good heartbeat was not just cut off: a task it
// executes may be the cause. A busy machine is always a little late, so short delays do not count.
const STALLED_SHARE = 0.25;
const LATE_MS_MIN = 150;
// How often an idle worker wakes to check its lease.
const IDLE_WATCH_MS = 750;
// Cut-off sessions are reported until the database confirms them, but at most this many are kept.
const CUT_OFF_MAX = 100;
// Changes between full, free and under pressure are reported immediately, so that other workers can use free slots, but
// not more often than this.
const REPORT_MS_MIN = 250;
// Many cancels in a row need one heartbeat: each heartbeat delivers all of them.
const SOON_MS_MIN = 100;

/**
 * One heartbeat per session renews the lease of everything it holds. The lease counts from the moment the heartbeat was
 * sent, by this process's monotonic clock. If no reply arrives in time, the session is lost.
 */
export class Heartbeat {
  readonly #o: HeartbeatOptions;
  readonly #sessions = new Set<Session>();
  readonly #trouble = new Trouble();
  readonly #reconnect = new Reconnect();
  #current: Session | null = null;
  #beatTimer: NodeJS.Timeout | null = null;
  #watchTimer: NodeJS.Timeout | null = null;
  #beating = false;
  #beatAgain = false;
  #beatSoonAfter = false;
  #registering = false;
  #registration: Promise<void> | null = null;
  #stopped = false;
  #draining = false;
  #wasFull = false;
  #toldState: PressureState["state"] = "normal";
  #toldMs = Number.NEGATIVE_INFINITY;
  #watchedMs = Number.POSITIVE_INFINITY;
  #watchWaitMs = 0;
  /** Sessions that were lost only because the database could not be reached. */
  #cutOff: string[] = [];

  constructor(options: HeartbeatOptions) {
    this.#o = options;
  }

  get current(): Session | null {
    return this.#current;
  }

  /** Registers; throws if the database cannot be reached. */
  async start(): Promise<void> {
    await this.#register();
    this.#schedule(this.#beatMs());
    this.#watchLater();
  }

  /** A task is claimed: from now on the lease is checked at the short interval. */
  speedUp(): void {
    if (this.#watchTimer === null || this.#watchWaitMs === this.#watchMs()) return;
    // Until now, no task was executing that could have caused a stall.
    this.#watchedMs = this.#o.clock.now();
    this.#watchLater();
    if (this.#o.hasReserve?.() === true && !this.#beating) this.#schedule(this.#beatMs());
  }

  #watchLater(): void {
    if (this.#watchTimer !== null) clearTimeout(this.#watchTimer);
    // guard: a worker with nothing in hand wakes rarely -> test/worker/heartbeat.test.ts: "an idle worker checks its lease rarely, and a busy one often"
    this.#watchWaitMs = /* guard:idle */ this.#o.idle?.() === true /* end */ ? this.#idleWatchMs() : this.#watchMs();
    this.#watchTimer = setTimeout(() => {
      this.watch();
      if (this.#watchTimer !== null) this.#watchLater();
    }, this.#watchWaitMs);
  }

  /** A reply was lost: the session stays for its known tasks, and a new session claims. */
  doubt(session: Session): void {
    if (session.lost || this.#current !== session) return;
    session.doubtful = true;
    session.doubtfulSinceMs = this.#o.clock.now();
    this.#current = null;
    this.#again();
    this.#schedule(0);
  }

  lose(session: Session): void {
    if (session.lost) return;
    session.lost = true;
    this.#sessions.delete(session);
    if (this.#current === session) this.#current = null;
    this.#o.log.error("the lease was lost; its tasks are aborted and will run on other workers", {
      worker: session.id,
      tasks: session.executions.size,
    });
    this.#o.onLost(session);
    if (!this.#stopped && this.#current === null) this.#again();
  }

  /** Loses the sessions whose lease is about to expire. */
  watch(): void {
    const now = this.#o.clock.now();
    const lateMs = now - this.#watchedMs - this.#watchWaitMs;
    this.#watchedMs = now;
    for (const session of this.#sessions) {
      if (lateMs > LATE_MS_MIN) session.stalledMs += lateMs;
      // guard: aborted before the lease runs out -> test/worker/heartbeat.test.ts: "a session without replies is lost before its lease runs out, and another starts"
      if (now < session.leaseUntilMs /* guard:margin */ - this.#marginMs() /* end */) continue;
      // guard: who was cut off did not die -> test/worker/heartbeat.test.ts: "a disconnected session reports that it survived, and a frozen one does not"
      /* guard:cut-off */ if (!this.#stoodStill(session)) this.#cutOff.push(session.id); /* end */
      this.lose(session);
    }
    this.#reportChange(now);
  }

  /**
   * Whether a handler may start for a session. Timers are not enough: a process that was stopped, or whose event loop
   * was blocked, may read the reply to a claim before its timers run.
   */
  holds(session: Session): boolean {
    // guard: the clock is asked before a handler starts -> test/worker/handler.test.ts: "no handler starts under a claim whose lease ran out while the event loop was blocked"
    /* guard:clock */ if (this.#o.clock.now() >= session.leaseUntilMs - this.#marginMs()) this.watch(); /* end */
    return !session.lost;
  }

  /**
   * Something waits for a heartbeat of this session, such as a cancel. Sends a heartbeat soon, but not one for each of
   * many.
   */
  beatSoon(id: string | null): void {
    const ours = id === null || [...this.#sessions].some((session) => session.id === id);
    if (!ours || this.#stopped) return;
    // While a heartbeat is in flight, its end decides when the next one is sent.
    if (this.#beating) this.#beatSoonAfter = true;
    else this.#schedule(this.#restMs());
  }

  drain(): void {
    this.#draining = true;
    this.#schedule(0);
  }

  /** Unregisters and hands back what the sessions still hold. Best effort: otherwise the lease expires. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#beatTimer !== null) clearTimeout(this.#beatTimer);
    if (this.#watchTimer !== null) clearTimeout(this.#watchTimer);
    this.#watchTimer = null;
    // A registration in flight unregisters by itself, while the connection is still open.
    await this.#registration?.catch(() => {});
    for (const session of this.#sessions) {
      await unregister(this.#o.connection, session.id).catch((e: unknown) =>
        tellTrouble(this.#o.log, "could not unregister from the database", e),
      );
    }
    this.#sessions.clear();
    this.#current = null;
  }

  async claimSuspect(session: Session, id: string): Promise<ClaimedTask | null> {
    return claimSuspect(this.#o.connection, { worker: session.id, token: newToken(), id });
  }

  /** Lets another worker try the suspect. Best effort: otherwise the reservation ends with the session. */
  async releaseSuspect(session: Session): Promise<void> {
    await releaseSuspect(this.#o.connection, session.id).catch((e: unknown) =>
      tellTrouble(this.#o.log, "could not release a suspect task", e),
    );
  }

  #register(): Promise<void> {
    this.#registration = this.#begin().finally(() => (this.#registration = null));
    return this.#registration;
  }

  async #begin(): Promise<void> {
    const sentMs = this.#o.clock.now();
    const { id, onCall } = await register(this.#o.connection, this.#o.registration);
    if (this.#stopped) {
      await unregister(this.#o.connection, id).catch(() => {});
      return;
    }
    const session = new Session(id, sentMs + this.#o.registration.leaseMs);
    this.#sessions.add(session);
    this.#current = session;
    this.#o.onDuty?.({ onCall, reserve: 0 });
    this.#o.onBegan(session);
    if (this.#cutOff.length > 0) this.#schedule(0);
  }

  /** Registers again, and retries until it succeeds. */
  #again(): void {
    if (this.#registering || this.#stopped) return;
    this.#registering = true;
    void this.#tryAgain().finally(() => (this.#registering = false));
  }

  async #tryAgain(): Promise<void> {
    while (!this.#stopped && this.#current === null) {
      try {
        await this.#register();
        this.#recovered();
      } catch (e) {
        this.#reconnect.failed(e, this.#o.clock.now());
        tellTrouble(this.#o.log, "could not register with the database", e);
        await new Promise((resolve) => setTimeout(resolve, this.#trouble.nextDelayMs()));
      }
    }
  }

  #recovered(): void {
    this.#trouble.over();
    this.#reconnect.answered(this.#o.log, this.#o.clock.now());
  }

  #schedule(ms: number): void {
    if (this.#beatTimer !== null) clearTimeout(this.#beatTimer);
    if (this.#stopped) return;
    this.#beatTimer = setTimeout(() => void this.#beatAll(), ms);
  }

  async #beatAll(): Promise<void> {
    if (this.#beating) {
      this.#beatAgain = true;
      return;
    }
    this.#beating = true;
    this.#beatAgain = this.#beatSoonAfter = false;
    let waitMs = this.#beatMs();
    // Iterate over a copy: a session that begins in the meantime waits for the next heartbeat, so this loop ends.
    for (const session of Array.from(this.#sessions)) {
      const ok = await this.#beat(session).catch((e: unknown) => {
        this.#reconnect.failed(e, this.#o.clock.now());
        tellTrouble(this.#o.log, "a heartbeat failed", e);
        return false;
      });
      if (!ok) waitMs = Math.min(waitMs, this.#trouble.nextDelayMs());
      else this.#recovered();
    }
    await this.#reportCutOff();
    this.#beating = false;
    // The reply may report workers in reserve.
    waitMs = Math.min(waitMs, this.#beatSoonAfter ? this.#restMs() : this.#beatMs());
    this.#schedule(this.#beatAgain ? 0 : waitMs);
  }

  /** Reports sessions that were only cut off: an outage is not a crash, and must not make tasks suspects. */
  async #reportCutOff(): Promise<void> {
    if (this.#cutOff.length === 0 || this.#current === null) return;
    const cutOff = this.#cutOff.slice(-CUT_OFF_MAX);
    try {
      const left = await survived(this.#o.connection, cutOff);
      const since = this.#cutOff.filter((id) => !cutOff.includes(id));
      this.#cutOff = [...left, ...since].slice(-CUT_OFF_MAX);
    } catch (e) {
      tellTrouble(this.#o.log, "could not report a disconnected session", e);
    }
  }

  async #beat(session: Session): Promise<boolean> {
    const sentMs = this.#o.clock.now();
    this.#toldMs = sentMs;
    const pressure = this.#o.pressure?.();
    this.#toldState = pressure?.state ?? "normal";
    const free = this.#o.free();
    if (free === 0) session.toldFull = true;
    const reply = await beat(this.#o.connection, session.id, {
      availableCapacity: free,
      memoryUsage: process.memoryUsage.rss(),
      draining: this.#draining || session.doubtful,
      busy: this.#o.idle?.() === false,
      ...(pressure !== undefined && { pressure }),
    });
    if (session.lost) return true;
    if (!reply.alive) {
      this.lose(session);
      return true;
    }
    // guard: a lease counts from when its heartbeat was sent -> test/worker/heartbeat.test.ts: "a lease counts from the time its heartbeat was sent, not from the time of the reply"
    session.leaseUntilMs = /* guard:sent */ sentMs /* end */ + this.#o.registration.leaseMs;
    session.stalledMs = 0;
    this.#heard(session, reply);
    // guard: who is told to have room again looks -> test/worker/heartbeat.test.ts: "a worker that was full claims again when it reports free permits"
    if (free > 0 && session.toldFull) {
      session.toldFull = false;
      /* guard:room */ this.#o.onRoom(); /* end */
    }
    if (session.doubtful) await this.#settleDoubt(session);
    return true;
  }

  #heard(session: Session, reply: BeatReply): void {
    if (session === this.#current) this.#o.onDuty?.(reply);
    for (const { id, reason } of reply.stops) this.#o.onStop(session, id, reason);
    if (reply.suspect !== null && session === this.#current) this.#o.onSuspect(session, reply.suspect);
  }

  /**
   * Hands back tasks whose claim reply was lost. Repeats with every heartbeat, because a cut-off claim may commit late.
   */
  async #settleDoubt(session: Session): Promise<void> {
    // guard: unknown claims are handed back -> test/worker/properties.test.ts: "tasks of a lost claim reply are released, and do not count as a crash"
    const released = /* guard:unknown */ await releaseUnknown(
      this.#o.connection,
      session.id,
      this.#o.known(session),
    ); /* end */
    if (released > 0) this.#o.log.info("tasks of a claim with a lost reply were released", { tasks: released });
    // If the session unregistered too early, a cut-off claim that commits late would count as a crash.
    const early = this.#o.clock.now() - session.doubtfulSinceMs < this.#beatMs(BUSY_BEAT_MS_MAX);
    // guard: a session with a lost reply unregisters late -> test/worker/heartbeat.test.ts: "a session with a lost reply heartbeats immediately and unregisters later"
    if (/* guard:doubt */ early || /* end */ !session.idle) return;
    await unregister(this.#o.connection, session.id);
    this.#sessions.delete(session);
  }

  #reportChange(now: number): void {
    const full = this.#o.free() === 0;
    const state = this.#o.pressure?.().state ?? "normal";
    // A full worker also stops claiming for moments, so while it is full its pressure state is not reported.
    const same = full === this.#wasFull && (full || state === this.#toldState);
    if (same || now - this.#toldMs < REPORT_MS_MIN) return;
    this.#wasFull = full;
    this.#schedule(0);
  }

  /** Minimum wait before the next heartbeat, given when the last one was sent. */
  #restMs(): number {
    return Math.max(0, this.#toldMs + SOON_MS_MIN - this.#o.clock.now());
  }

  #stoodStill({ stalledMs }: Session): boolean {
    return stalledMs > STALLED_SHARE * this.#o.registration.leaseMs;
  }

  /** Well below the margin before the lease ends, because a task may be claimed in the meantime. */
  #idleWatchMs(): number {
    const { leaseMs } = this.#o.registration;
    return Math.max(this.#watchMs(), Math.min(IDLE_WATCH_MS, leaseMs / 20));
  }

  #watchMs(): number {
    return Math.min(50, this.#o.registration.leaseMs / 10);
  }

  #beatMs(reserveMs = RESERVE_BEAT_MS_MAX): number {
    const busy = this.#o.hasReserve?.() === true && this.#o.idle?.() === false;
    // guard: a worker in reserve hears of a cancel in time -> test/worker/heartbeat.test.ts: "a worker in reserve with tasks in flight heartbeats every 350 ms"
    const busyMs = /* guard:reserve */ this.#o.inReserve?.() === true ? reserveMs : BUSY_BEAT_MS_MAX; /* end */
    return Math.min(this.#o.registration.leaseMs / BEATS_PER_LEASE, busy ? busyMs : BEAT_MS_MAX);
  }

  #marginMs(): number {
    return Math.max(MARGIN_MS_MIN, this.#o.registration.leaseMs * MARGIN_SHARE);
  }
}
