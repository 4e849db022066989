import { randomInt } from "node:crypto";
import type { Clock, Logger } from "../core/ports.js";
import { tellTrouble } from "../postgres/errors.js";
import { keepLeave, keepLook, type KeepLook, type LookIntervals } from "../postgres/keep-look.js";
import { forgetLimits, keepLanes, due, pruneDone, pruneExpired, reap } from "../postgres/keep.js";
import type { Connection } from "../postgres/connection.js";
import { ALL_KEEPERS } from "../postgres/listen.js";
import { followLeft } from "../postgres/workflow/follow.js";
import { pruneGraphs } from "../postgres/workflow/graph.js";
import { FIRST, cancelOrphans, keepRuns, pruneRuns, type OrphansWalk } from "../postgres/workflow/keep.js";
import { tick } from "../schedules/tick.js";
import { Vacuum } from "./vacuum.js";

/** How long history is kept, per outcome; 0 deletes immediately. */
export interface History {
  readonly succeededMs: number;
  readonly failedMs: number;
  readonly cancelledMs: number;
}

interface KeeperOptions {
  readonly connection: Connection;
  readonly log: Logger;
  readonly clock: Clock;
  /** How often to poll where notifications do not arrive, and while something waits for the next poll. */
  readonly pollIntervalMs: number;
  readonly history: History;
  /** Whether notifications arrive, or would if this keeper led. */
  readonly listening: () => boolean;
  /** This keeper starts to lead and needs notifications, or no longer leads. */
  readonly onLead?: (leads: boolean) => void;
  /** Tasks became ready. */
  readonly onMoved: () => void;
  /** A run has tasks that need to be placed by a worker that handles them. */
  readonly onUnplaced: () => void;
}

// The longest delay between polls where notifications arrive: while idle, and with some work in the queue.
// sluice.poll_by relies on the first.
const QUIET_MS = 2_500;
const LIVE_MS = 1_000;
// Other keepers check an expired lease too; this spreads them out.
const SPREAD_MS = 100;
const LOOK_GAP_MS = 5;
const RETRY_MS = 500;
// A worker that starts to work makes sure that the leader notices within this time.
const ACTIVE_MS = 200;
const DUE_MAX = 1_000;
const PRUNE_MAX = 2_000;
const PRUNE_STEPS_MAX = 200;
// There may be many old runs to keep: stop after this many steps that prune nothing, and continue next time.
const PRUNE_IDLE_MAX = 10;
const LANES_MAX = 500;
// A group that is unused for this long is deleted. Clients declare the groups they use four times as often.
const GROUP_UNUSED_MS = 3_600_000;
const GROUPS_MAX = 500;
const GROUP_STEPS_MAX = 40;
const RUNS_MAX = 1_000;
const ORPHANS_MAX = 100;
// An outcome that a caller waited for is kept this long, even if history is off.
const AWAITED_MS = 60_000;
/** How often the leader runs duties that no poll asks for. */
const INTERVALS_MS = {
  lanes: 1_000,
  reap: 1_000,
  orphans: 1_000,
  prune: 5_000,
  expired: 10_000,
  idleExpired: 30_000,
  graphs: 60_000,
  groups: 60_000,
  vacuum: 1_000,
  idleVacuum: 15_000,
} as const;

type Duty = "due" | "schedules" | "runs" | Exclude<keyof typeof INTERVALS_MS, "idleVacuum" | "idleExpired">;

/**
 * Does the work that must happen without a request. Every worker process runs a keeper, and any number may run at the
 * same time, because each statement skips rows that another has locked. To save work one of them leads: it sleeps until
 * something is due, and does the work. The others only check that the leader is still active, and all of them check
 * when a lease expires.
 */
export class Keeper {
  /** The id by which notifications address this keeper. */
  readonly id = String(randomInt(1, 2 ** 47));
  readonly #o: KeeperOptions;
  readonly #vacuum: Vacuum;
  readonly #busy = new Set<Duty>();
  readonly #restUntilMs = new Map<Duty, number>();
  readonly #beganMs = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;
  #again = false;
  #leads = false;
  #liveMs = Number.NEGATIVE_INFINITY;
  // Tasks that this worker has put off become due until then: it does not wait for the leader to notice them.
  #followUntilMs = Number.NEGATIVE_INFINITY;
  #stopped = false;
  // The positions of walks over rows: each row is reached, however many cannot be processed yet.
  #walk = FIRST;
  #orphan: OrphansWalk = { after: FIRST, afterParent: FIRST };
  #old = FIRST;
  #limit = 0;

  constructor(options: KeeperOptions) {
    this.#o = options;
    this.#vacuum = new Vacuum(options.connection, options.clock);
  }

  start(): void {
    this.look();
  }

  /** Resolves when another keeper may lead. Best effort: otherwise the others notice by themselves. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#looking;
    if (this.#leads) await keepLeave(this.#o.connection, this.id).catch(() => {});
  }

  /** Something may be due sooner than expected: polls immediately. */
  look(): void {
    this.#wakeIn(0);
  }

  /** Handles a notification: the keeper it names polls immediately. ALL_KEEPERS: the leader has left. */
  notified(keeper: string): void {
    if (keeper === this.id) this.look();
    else if (keeper === ALL_KEEPERS) this.#wakeIn(Math.random() * SPREAD_MS);
  }

  /** This worker has work that the leader may not have noticed yet. */
  active(): void {
    if (this.#o.clock.now() - this.#lookedMs > LIVE_MS) this.#wakeIn(ACTIVE_MS);
  }

  /** A task of this worker becomes due again in `ms`. */
  expect(ms: number): void {
    if (ms > QUIET_MS) return;
    this.#followUntilMs = Math.max(this.#followUntilMs, this.#o.clock.now() + ms + LIVE_MS);
    this.#wakeIn(ms);
  }

  /** Polls in `ms`, or earlier if an earlier poll is already scheduled. */
  #wakeIn(ms: number): void {
    const now = this.#o.clock.now();
    const atMs = Math.max(now + ms, this.#lookedMs + LOOK_GAP_MS);
    if (this.#stopped || this.#wakeAtMs <= atMs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#wakeAtMs = atMs;
    this.#timer = setTimeout(() => {
      this.#wakeAtMs = Number.POSITIVE_INFINITY;
      this.#timer = null;
      if (this.#looking !== null) this.#again = true;
      else this.#looking = this.#poll().finally(() => (this.#looking = null));
    }, atMs - now);
  }

  async #poll(): Promise<void> {
    this.#again = false;
    try {
      const seen = await keepLook(this.#o.connection, this.id, this.#intervals());
      this.#lookedMs = this.#o.clock.now();
      // A keeper that stops while this poll makes it the leader must give up the lead.
      if (this.#stopped) return void (this.#leads = seen.leads);
      this.#lead(seen.leads);
      this.#attend(seen);
      this.#wakeIn(this.#again ? 0 : this.#nextMs(seen));
    } catch (e) {
      if (this.#stopped) return;
      tellTrouble(this.#o.log, "keeper: polling for due work failed", e);
      // guard: what failed once is tried again -> test/worker/properties.test.ts: "every claimed task is settled, released or lost with its lease, and none is settled twice under one claim"
      /* guard:retry */ this.#wakeIn(RETRY_MS); /* end */
    }
  }

  #intervals(): LookIntervals {
    const pollMs = Math.min(this.#o.pollIntervalMs, QUIET_MS);
    if (this.#o.listening()) return { quietMs: QUIET_MS, liveMs: LIVE_MS, pollMs };
    return { quietMs: pollMs, liveMs: Math.min(pollMs, LIVE_MS), pollMs };
  }

  #lead(leads: boolean): void {
    if (leads !== this.#leads) this.#o.onLead?.(leads);
    this.#leads = leads;
  }

  #nextMs({ leads, nextMs, dueMs }: KeepLook): number {
    if (leads) return nextMs;
    if (this.#follows && dueMs !== null && dueMs < nextMs) return dueMs;
    return nextMs + Math.random() * SPREAD_MS;
  }

  get #follows(): boolean {
    return this.#o.clock.now() < this.#followUntilMs;
  }

  /** Starts all duties that are due. */
  #attend({ leads, live, dead, due, ticks, runs, maps, ended }: KeepLook): void {
    if (dead) this.#do("reap", () => this.#reap());
    if (due && (leads || this.#follows)) this.#do("due", () => this.#due());
    if (!leads) return;
    if (ticks) this.#do("schedules", () => this.#schedules());
    if (runs) this.#do("runs", () => this.#runs());
    if (live) this.#every("lanes", INTERVALS_MS.lanes, () => this.#lanes());
    if (live) this.#every("reap", INTERVALS_MS.reap, () => this.#reap());
    if (maps) this.#every("orphans", INTERVALS_MS.orphans, () => this.#orphans());
    this.#every("prune", INTERVALS_MS.prune, () => this.#prune(ended));
    this.#every("graphs", INTERVALS_MS.graphs, () => pruneGraphs(this.#o.connection));
    this.#every("groups", INTERVALS_MS.groups, () => this.#groups());
    if (live) this.#liveMs = this.#o.clock.now();
    const lately = this.#o.clock.now() - this.#liveMs < INTERVALS_MS.idleVacuum;
    const expiredMs = lately ? INTERVALS_MS.expired : INTERVALS_MS.idleExpired;
    this.#every("expired", expiredMs, () => this.#expired());
    const vacuumMs = lately ? INTERVALS_MS.vacuum : INTERVALS_MS.idleVacuum;
    this.#every("vacuum", vacuumMs, () => this.#vacuum.run());
  }

  /**
   * Runs a duty at most once per interval, counted from when this keeper first led, so that keepers that alternate in
   * leading still run it.
   */
  #every(duty: Duty, intervalMs: number, work: () => Promise<unknown>): void {
    const now = this.#o.clock.now();
    const began = this.#beganMs.get(duty);
    // A poll may be a little early.
    if (began !== undefined && now - began < intervalMs * 0.9) return;
    this.#beganMs.set(duty, now);
    if (began !== undefined || duty === "lanes") this.#do(duty, work);
  }

  /** Starts a duty, unless it is running or has just failed. */
  #do(duty: Duty, work: () => Promise<unknown>): void {
    const rests = this.#o.clock.now() < (this.#restUntilMs.get(duty) ?? 0);
    if (rests || this.#busy.has(duty)) return;
    this.#busy.add(duty);
    void this.#try(duty, work).finally(() => this.#busy.delete(duty));
  }

  async #try(duty: Duty, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (e) {
      if (this.#stopped) return;
      tellTrouble(this.#o.log, `keeper: ${duty} failed`, e);
      this.#rest(duty, RETRY_MS);
    }
  }

  #rest(duty: Duty, ms: number): void {
    this.#restUntilMs.set(duty, this.#o.clock.now() + ms);
  }

  async #due(): Promise<void> {
    let all = 0;
    for (let moved = DUE_MAX; moved === DUE_MAX && !this.#stopped; all += moved) {
      ({ moved } = await due(this.#o.connection, DUE_MAX));
      if (moved > 0) this.#o.onMoved();
    }
    // Another open transaction has locked the due tasks.
    if (all === 0) this.#rest("due", Math.min(this.#o.pollIntervalMs, QUIET_MS));
  }

  /** Processes notes, timers, cancels and reruns. */
  async #runs(): Promise<void> {
    for (let moved = RUNS_MAX; moved >= RUNS_MAX && !this.#stopped;) {
      const kept = await keepRuns(this.#o.connection, RUNS_MAX, this.#walk);
      this.#walk = kept.after;
      moved = kept.moved;
      if (kept.unplaced) this.#o.onUnplaced();
      if (moved > 0) this.#o.onMoved();
    }
  }

  /** One at a time: each is a separate run, perhaps with many items. */
  async #orphans(): Promise<void> {
    for (let i = 0; i < ORPHANS_MAX && !this.#stopped; i++) {
      // guard: a pause that was cut off -> test/runs/map.test.ts: "a keeper finishes an interrupted resume for the maps of the run"
      /* guard:cut-off */ if (!(await followLeft(this.#o.connection))) /* end */ break;
    }
    for (let i = 0; i < ORPHANS_MAX && !this.#stopped; i++) {
      const { cancelled, ...walk } = await cancelOrphans(this.#o.connection, ORPHANS_MAX, this.#orphan);
      this.#orphan = walk;
      if (cancelled === 0) break;
    }
  }

  async #schedules(): Promise<void> {
    const { ticks, nextMs } = await tick(this.#o.connection, this.#o.log);
    if (ticks > 0) this.#o.onMoved();
    // The poll did not include the next tick of these schedules.
    this.#wakeIn(nextMs);
  }

  async #reap(): Promise<void> {
    const { workers, tasks, poisoned } = await reap(this.#o.connection);
    if (workers + tasks === 0) return;
    this.#o.log.warn("recovered the tasks of dead workers", { workers, tasks, poisoned });
    this.#o.onMoved();
  }

  async #lanes(): Promise<void> {
    for (let looked = LANES_MAX; looked >= LANES_MAX && !this.#stopped;) {
      looked = await keepLanes(this.#o.connection, LANES_MAX);
      if (looked > 0) this.#o.onMoved();
    }
  }

  /** Bounded steps, so that no statement is long and no other work on this connection waits long. */
  async #prune(runs: boolean): Promise<void> {
    const older = atLeast(this.#o.history, AWAITED_MS);
    for (let i = 0; i < PRUNE_STEPS_MAX && !this.#stopped; i++) {
      if ((await pruneDone(this.#o.connection, older)).rested) break;
    }
    if (runs) await this.#pruneRuns(older);
  }

  async #expired(): Promise<void> {
    for (let i = 0; i < PRUNE_STEPS_MAX && !this.#stopped; i++) {
      if ((await pruneExpired(this.#o.connection, PRUNE_MAX)) < PRUNE_MAX) break;
    }
  }

  /** Deletes unused groups. Each group is reached, however many there are. */
  async #groups(): Promise<void> {
    const unused = { max: GROUPS_MAX, unusedMs: GROUP_UNUSED_MS };
    for (let i = 0; i < GROUP_STEPS_MAX && !this.#stopped; i++) {
      const { after } = await forgetLimits(this.#o.connection, { ...unused, after: this.#limit });
      this.#limit = after;
      if (after === 0) break;
    }
  }

  /** Continues while there is something to delete: many small runs are few rows at a time. */
  async #pruneRuns(older: History): Promise<void> {
    let idle = 0;
    for (let i = 0; i < PRUNE_STEPS_MAX && idle < PRUNE_IDLE_MAX && !this.#stopped; i++) {
      const { pruned, after, more } = await pruneRuns(this.#o.connection, older, PRUNE_MAX, this.#old);
      this.#old = after;
      if (!more) break;
      idle = pruned > 0 ? 0 : idle + 1;
    }
  }
}

function atLeast({ succeededMs, failedMs, cancelledMs }: History, ms: number): History {
  return {
    succeededMs: Math.max(succeededMs, ms),
    failedMs: Math.max(failedMs, ms),
    cancelledMs: Math.max(cancelledMs, ms),
  };
}
