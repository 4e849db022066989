import type { ErrorDescription } from "../core/describe.js";
import type { TaskState } from "../core/state.js";
import type { Database } from "./database.js";
import { statement } from "./statement.js";
import { dateOf, type TimeText } from "./time.js";

/** The current state of a task. */
export interface TaskStatus {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly priority: number;
  readonly state: TaskState;
  /** Attempts used, including the current one. */
  readonly attempt: number;
  readonly attemptsMax: number;
  readonly createdAt: Date;
  readonly runAt: Date | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  /** The result of a success, the error of a failure, or the reason of a cancel. */
  readonly outcome: unknown;
  /** The error of the last failed attempt, while the task has not ended. */
  readonly lastError: ErrorDescription | null;
  /** What the last execution has reported by `ctx.progress`. */
  readonly progress: TaskProgress | null;
}

/** The latest progress that a handler has reported. */
export interface TaskProgress {
  /** From 0 to 1. */
  readonly fraction: number;
  readonly data: unknown;
  readonly at: Date;
}

interface StateRow {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly priority: number;
  readonly state: TaskState;
  readonly attempt: number;
  readonly attempts_max: number;
  readonly created_at: TimeText;
  readonly run_at: TimeText | null;
  readonly started_at: TimeText | null;
  readonly finished_at: TimeText | null;
  readonly outcome: unknown;
  readonly last_error: ErrorDescription | null;
  readonly progress: { readonly fraction: number; readonly data: unknown; readonly at: string } | null;
}

const stateStatement = statement<StateRow>({
  name: "task_state",
  text: `select id::text as id, type, queue, priority, state, attempt, attempts_max, to_json(created_at) as created_at, to_json(run_at) as run_at, to_json(started_at) as started_at, to_json(finished_at) as finished_at,
      outcome, case when finished_at is null then sluice.last_error(id) end as last_error,
      sluice.task_progress(id) as progress
    from sluice.task_by_id($1)`,
  params: ["int8"],
  columns: [
    "id",
    "type",
    "queue",
    "priority",
    "state",
    "attempt",
    "attempts_max",
    "created_at",
    "run_at",
    "started_at",
    "finished_at",
    "outcome",
    "last_error",
    "progress",
  ],
});

/** The task, or null if it does not exist or its history is not kept. */
export async function inspect(db: Database, id: string): Promise<TaskStatus | null> {
  const [row] = await db.run(stateStatement, [id]);
  if (row === undefined) return null;
  const { attempts_max, created_at, run_at, started_at, finished_at, last_error, progress, ...rest } = row;
  return {
    ...rest,
    attemptsMax: attempts_max,
    createdAt: dateOf(created_at),
    runAt: dateOf(run_at),
    startedAt: dateOf(started_at),
    finishedAt: dateOf(finished_at),
    lastError: last_error,
    progress: progress === null ? null : { ...progress, at: new Date(progress.at) },
  };
}

const inputStatement = statement<{ input: unknown }>({
  name: "task_input",
  text: "select input from sluice.task where id = $1",
  params: ["int8"],
  columns: ["input"],
});

/** The input of the task, in a list; empty if the task does not exist. */
export async function inspectInput(db: Database, id: string): Promise<readonly unknown[]> {
  return (await db.run(inputStatement, [id])).map(({ input }) => input);
}

/** One failed attempt of a task. */
export interface FailedAttempt {
  /** The number of the attempt, from 1; a manual retry starts again at 1. */
  readonly attempt: number;
  /** The name of the worker; null if it is gone. */
  readonly worker: string | null;
  readonly startedAt: Date | null;
  readonly failedAt: Date;
  /** How long the attempt took; null if its start is unknown. */
  readonly durationMs: number | null;
  readonly error: ErrorDescription | null;
}

const attemptsStatement = statement<{
  readonly attempt: number;
  readonly worker: string | null;
  readonly started_at: TimeText | null;
  readonly failed_at: TimeText;
  readonly error: ErrorDescription | null;
}>({
  name: "task_attempts",
  text: `select attempt, worker, to_json(started_at) as started_at, to_json(failed_at) as failed_at, error
    from sluice.task_attempts($1)`,
  params: ["int8"],
  columns: ["attempt", "worker", "started_at", "failed_at", "error"],
});

/** The failed attempts of the task, the oldest first: the last 10 that were retried, and the final failure. */
export async function inspectAttempts(db: Database, id: string): Promise<FailedAttempt[]> {
  const rows = await db.run(attemptsStatement, [id]);
  return rows.map(({ started_at, failed_at, ...rest }) => {
    const startedAt = dateOf(started_at);
    const failedAt = dateOf(failed_at);
    const durationMs = startedAt === null ? null : Math.max(0, failedAt.getTime() - startedAt.getTime());
    return { ...rest, startedAt, failedAt, durationMs };
  });
}

/** What became of a task after an outcome was recorded. */
export interface TaskFate {
  readonly id: string;
  readonly state: TaskState;
  readonly attempt: number;
  readonly runAt: Date | null;
  /** The reason of a cancel. */
  readonly reason: string | null;
}

const fatesStatement = statement<{
  id: string;
  state: TaskState;
  attempt: number;
  run_at: TimeText | null;
  reason: string | null;
}>({
  name: "task_fates",
  text: `select t.id::text as id, t.state, t.attempt, to_json(t.run_at) as run_at,
      case when t.state = 'cancelled' then t.outcome ->> 'reason' end as reason
    from unnest($1::bigint[]) u(id) cross join lateral sluice.task_by_id(u.id) t`,
  params: ["_int8"],
  columns: ["id", "state", "attempt", "run_at", "reason"],
});

/** The fates of these tasks; a task without history has none. Does not wait for callers' own connections. */
export async function taskFates(db: Database, ids: readonly string[]): Promise<TaskFate[]> {
  const rows = await db.run(fatesStatement, [[...ids]], db.aside);
  return rows.map(({ run_at, ...rest }) => ({ ...rest, runAt: dateOf(run_at) }));
}

const countsStatement = statement<{ state: TaskState; n: string }>({
  name: "counts",
  text: `select state, n from (
      select 'scheduled' as state, count(*) as n from sluice.scheduled
      union all select 'waiting', (select count(*) from sluice.waiting) + (select count(*) from sluice.gated) + (select count(*) from sluice.parked) + (select count(*) from sluice.parent)
      union all select 'ready', (select count(*) from sluice.ready) + (select count(*) from sluice.suspect)
      union all select 'running', count(*) from sluice.running
      union all select 'succeeded', count(*) from sluice.done where state = 'succeeded'
      union all select 'failed', count(*) from sluice.done where state = 'failed'
      union all select 'cancelled', count(*) from sluice.done where state = 'cancelled') x`,
  params: [],
  columns: ["state", "n"],
});

/** The number of tasks in each state. */
export async function counts(db: Database): Promise<Record<TaskState, number>> {
  const rows = await db.run(countsStatement, []);
  return Object.fromEntries(rows.map((r) => [r.state, Number(r.n)])) as Record<TaskState, number>;
}

const awaitStatement = statement<{ id: string }>({
  name: "await",
  text: "insert into sluice.awaited (id, until) values ($1, sluice.clock() + $2 * interval '1 millisecond') returning id::text as id",
  params: ["int8", "float8"],
  columns: ["id"],
});

/** Registers a wait for a task, so that its outcome is kept and notified. */
export async function awaitTask(db: Database, id: string, forMs: number): Promise<void> {
  await db.run(awaitStatement, [id, forMs]);
}
