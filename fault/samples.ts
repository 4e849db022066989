// What a run looked like from outside, second by second.
import type pg from "pg";
import type { WorkerFleet } from "./fleet.js";

export interface Sample {
  /** Since the beginning of the run. */
  readonly second: number;
  /** Of all workers together, and of the largest. */
  readonly rssMb: number;
  readonly rssMaxMb: number;
  /** Of the tables that change all the time; null while the server does not answer. */
  readonly deadTuples: number | null;
  /** Tasks that are left to run; null likewise. */
  readonly backlog: number | null;
  readonly stepP50Ms: number | null;
  readonly stepP99Ms: number | null;
  readonly inFlight: number;
  readonly endedPerSecond: number;
}

const PERIOD_MS = 1_000;
const ASK_MS_MAX = 800;
const LOOK = `select
    (select coalesce(sum(n_dead_tup), 0) from pg_stat_user_tables
      where schemaname = 'sluice' and relname <> all ('{done,task,idempotency}'))::int as dead,
    ((select count(*) from sluice.ready) + (select count(*) from sluice.gated) + (select count(*) from sluice.waiting)
      + (select count(*) from sluice.parked) + (select count(*) from sluice.scheduled))::int as backlog`;

interface Look {
  readonly dead: number;
  readonly backlog: number;
}

export class Sampler {
  readonly samples: Sample[] = [];
  /** All steps of the run, for its median. */
  readonly stepsMs: number[] = [];
  readonly #fleet: WorkerFleet;
  readonly #sql: pg.Pool;
  readonly #onBacklog: (tasks: number) => void;
  #begunMs = performance.now();
  #stepsMs: number[] = [];
  #ended = 0;
  #lastMs = performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(fleet: WorkerFleet, sql: pg.Pool, onBacklog: (tasks: number) => void) {
    this.#fleet = fleet;
    this.#sql = sql;
    this.#onBacklog = onBacklog;
  }

  get begunMs(): number {
    return this.#begunMs;
  }

  start(): void {
    this.#begunMs = performance.now();
    this.#timer = setInterval(() => void this.#sample(), PERIOD_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  step(ms: number): void {
    this.#stepsMs.push(ms);
    this.stepsMs.push(ms);
  }

  async #sample(): Promise<void> {
    const now = performance.now();
    const living = this.#fleet.living();
    const rss = living.map(({ rssBytes }) => rssBytes / 2 ** 20);
    const steps = this.#stepsMs.splice(0).toSorted((a, b) => a - b);
    // One that has just died is counted again when it is replaced.
    const ended = Math.max(this.#ended, this.#fleet.ended);
    const endedPerSecond = ((ended - this.#ended) * 1_000) / Math.max(1, now - this.#lastMs);
    [this.#ended, this.#lastMs] = [ended, now];
    const sample = {
      second: (now - this.#begunMs) / 1_000,
      rssMb: rss.reduce((sum, mb) => sum + mb, 0),
      rssMaxMb: Math.max(0, ...rss),
      stepP50Ms: quantile(steps, 0.5),
      stepP99Ms: quantile(steps, 0.99),
      inFlight: living.reduce((sum, member) => sum + member.inHand(), 0),
      endedPerSecond,
    };
    const look = await this.#look();
    const { dead: deadTuples = null, backlog = null } = look ?? {};
    if (backlog !== null) this.#onBacklog(backlog);
    this.samples.push({ ...sample, deadTuples, backlog });
  }

  async #look(): Promise<Look | null> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), ASK_MS_MAX);
    });
    const asked = this.#sql.query<Look>(LOOK).then(
      ({ rows }) => rows[0] ?? null,
      () => null,
    );
    try {
      return await Promise.race([asked, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** How much the largest worker grew per minute: the line that fits best. */
export function memorySlope(samples: readonly Sample[]): number {
  const n = samples.length;
  const mean = (of: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / Math.max(1, n);
  const [second, mb] = [mean((s) => s.second), mean((s) => s.rssMaxMb)];
  const spread = mean((s) => (s.second - second) ** 2);
  return spread === 0 ? 0 : (60 * mean((s) => (s.second - second) * (s.rssMaxMb - mb))) / spread;
}

/** Of numbers in ascending order; null of none. */
export function quantile(sorted: readonly number[], share: number): number | null {
  if (sorted.length === 0) return null;
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
