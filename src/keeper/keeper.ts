import type { Clock, Logger } from "../core/ports.js";
import { tellTrouble } from "../postgres/fault.js";
import { keepLanes, due, pruneDone, pruneNotes, reap } from "../postgres/keep.js";
import type { Line } from "../postgres/line.js";
import { pruneGraphs } from "../postgres/workflow/graph.js";
import {
  FIRST,
  cancelOrphans,
  keepRuns,
  pruneRuns,
  type OrphansWalk,
} from "../postgres/workflow/keep.js";
import { followLeft } from "../postgres/workflow/follow.js";
import { Broom } from "./broom.js";
import { tick } from "./tick.js";

/** How long history is kept, per outcome; 0 deletes at once. */
export interface History {
  readonly succeededMs: number;
  readonly failedMs: number;
  readonly cancelledMs: number;
}

interface KeeperOptions {
  readonly line: Line;
  readonly log: Logger;
  readonly clock: Clock;
  readonly dueIntervalMs: number;
  readonly reapIntervalMs: number;
  readonly history: History;
  /** Something became ready. */
  readonly onMoved: () => void;
  /** Tasks of a run are to be placed, by whoever knows them. */
  readonly onUnplaced: () => void;
}

const DUE_MAX = 1_000;
// Also how long a look waits after one that failed.
const SCHEDULES_FIRST_MS = 500;
const PRUNE_MAX = 2_000;
const PRUNE_STEPS_MAX = 200;
// Old runs that are to be kept may be many: so many looks that find nothing else, and the rest next time.
const PRUNE_IDLE_MAX = 10;
const PRUNE_INTERVAL_MS = 5_000;
const GRAPHS_INTERVAL_MS = 60_000;
const LANES_MAX = 500;
const LANES_INTERVAL_MS = 1_000;
const SWEEP_INTERVAL_MS = 1_000;
const RUNS_MAX = 1_000;
const ORPHANS_MAX = 100;
// An outcome that somebody waited for is kept this long even where history is off.
const AWAITED_MS = 60_000;

/**
 * What must happen without anyone asking. Every worker process runs one; any number may run at once,
 * because each statement skips what another has in hand.
 */
export class Keeper {
  readonly #o: KeeperOptions;
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #stopped = false;
  // Where walks over rows have come: each row has its turn, however many cannot be helped yet.
  #again = FIRST;
  #orphan: OrphansWalk = { after: FIRST, afterParent: FIRST };
  #old = FIRST;

  constructor(options: KeeperOptions) {
    this.#o = options;
  }

  start(): void {
    this.#every("due", this.#o.dueIntervalMs, () => this.#due());
    this.#every("reap", this.#o.reapIntervalMs, () => this.#reap());
    this.#every("schedules", SCHEDULES_FIRST_MS, () => this.#schedules());
    this.#every("lanes", LANES_INTERVAL_MS, () => this.#lanes());
    this.#every("runs", this.#o.dueIntervalMs, () => this.#runs());
    this.#every("orphans", LANES_INTERVAL_MS, () => this.#orphans());
    this.#every("prune", PRUNE_INTERVAL_MS, () => this.#prune());
    this.#every("graphs", GRAPHS_INTERVAL_MS, () => pruneGraphs(this.#o.line));
    const broom = new Broom(this.#o.line, this.#o.clock);
    this.#every("sweep", SWEEP_INTERVAL_MS, () => broom.sweep());
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  /** Calls work again and again; work may say that it wants to be called sooner. */
  #every(name: string, intervalMs: number, work: () => Promise<number | void>): void {
    const again = (ms: number): void => {
      if (!this.#stopped)
        this.#timers.set(
          name,
          setTimeout(() => void turn(), ms * (0.9 + Math.random() * 0.2)),
        );
    };
    const turn = async (): Promise<void> => {
      try {
        again((await work()) ?? intervalMs);
      } catch (e) {
        if (this.#stopped) return;
        tellTrouble(this.#o.log, `keeper: ${name} failed`, e);
        // guard: what failed once is tried again -> test/worker/properties.test.ts: "every claimed task is settled, released or lost with its lease, and none twice under one claim"
        again(Math.max(intervalMs, 500));
      }
    };
    again(intervalMs);
  }

  async #due(): Promise<number> {
    const { moved, nextMs } = await due(this.#o.line, DUE_MAX);
    if (moved > 0) this.#o.onMoved();
    if (moved === DUE_MAX) return 0;
    return Math.min(nextMs ?? this.#o.dueIntervalMs, this.#o.dueIntervalMs);
  }

  /** Notes, timers, what is to be cancelled or to run again. */
  async #runs(): Promise<number> {
    const { moved, nextMs, unplaced, after } = await keepRuns(this.#o.line, RUNS_MAX, this.#again);
    this.#again = after;
    if (unplaced) this.#o.onUnplaced();
    if (moved > 0) this.#o.onMoved();
    if (moved >= RUNS_MAX) return 0;
    return Math.min(nextMs ?? this.#o.dueIntervalMs, this.#o.dueIntervalMs);
  }

  /** One at a time: each is a run of its own, of many items perhaps. */
  async #orphans(): Promise<void> {
    for (let i = 0; i < ORPHANS_MAX && !this.#stopped; i++) {
      // guard: a pause that was cut off -> test/worker/workflow-map.test.ts: "a resume that was cut off before the maps followed is ended by a keeper"
      if (!(await followLeft(this.#o.line))) break;
    }
    for (let i = 0; i < ORPHANS_MAX && !this.#stopped; i++) {
      const { cancelled, ...walk } = await cancelOrphans(this.#o.line, ORPHANS_MAX, this.#orphan);
      this.#orphan = walk;
      if (cancelled === 0) break;
    }
  }

  async #schedules(): Promise<number> {
    const { ticks, nextMs } = await tick(this.#o.line, this.#o.log);
    if (ticks > 0) this.#o.onMoved();
    return nextMs;
  }

  async #reap(): Promise<void> {
    const { workers, tasks, poisoned } = await reap(this.#o.line);
    if (workers + tasks === 0) return;
    this.#o.log.warn("took back what dead workers held", { workers, tasks, poisoned });
    this.#o.onMoved();
  }

  async #lanes(): Promise<number> {
    const looked = await keepLanes(this.#o.line, LANES_MAX);
    if (looked > 0) this.#o.onMoved();
    return looked < LANES_MAX ? LANES_INTERVAL_MS : 0;
  }

  /** Bounded steps, so that no statement is long and no other work on this line waits long. */
  async #prune(): Promise<void> {
    const older = atLeast(this.#o.history, AWAITED_MS);
    for (let i = 0; i < PRUNE_STEPS_MAX && !this.#stopped; i++) {
      if ((await pruneDone(this.#o.line, older)).rested) break;
    }
    for (let i = 0; i < PRUNE_STEPS_MAX && !this.#stopped; i++) {
      if ((await pruneNotes(this.#o.line, PRUNE_MAX)) < PRUNE_MAX) break;
    }
    await this.#pruneRuns(older);
  }

  /** Goes on while there is something to delete: many small runs are few rows at a time. */
  async #pruneRuns(older: History): Promise<void> {
    let idle = 0;
    for (let i = 0; i < PRUNE_STEPS_MAX && idle < PRUNE_IDLE_MAX && !this.#stopped; i++) {
      const { pruned, after, more } = await pruneRuns(this.#o.line, older, PRUNE_MAX, this.#old);
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
