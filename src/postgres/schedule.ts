import { tickTime, type Missed } from "../core/schedule.js";
import type { Database } from "./database.js";
import { statement, type Statement } from "./statement.js";
import { dateOf, type TimeText } from "./time.js";

/** The current state of a schedule. */
export interface ScheduleStatus {
  readonly name: string;
  readonly type: string;
  readonly queue: string;
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly everyMs: number | null;
  readonly missed: Missed;
  /** As set in code. */
  readonly enabled: boolean;
  /** Set by an operator; `set` does not undo it. */
  readonly paused: boolean;
  /** The next tick; null while it is paused or not enabled. */
  readonly nextAt: Date | null;
  /** Due time of the last tick that was enqueued. */
  readonly lastAt: Date | null;
  readonly lastTaskId: string | null;
  /** Why the last tick could not be enqueued; null if it could. */
  readonly trouble: string | null;
}

/** A schedule as it was read. */
export interface SeenSchedule {
  readonly status: ScheduleStatus;
  readonly digest: string;
  readonly revision: string;
  readonly inputBytes: number;
}

interface StatusRow {
  readonly name: string;
  readonly type: string;
  readonly queue: string;
  readonly cron: string | null;
  readonly time_zone: string | null;
  readonly every_ms: string | null;
  readonly missed: Missed;
  readonly enabled: boolean;
  readonly paused: boolean;
  readonly next_at: TimeText | null;
  readonly last_at: TimeText | null;
  readonly last_task: string | null;
  readonly trouble: string | null;
}

interface SeenRow extends StatusRow {
  readonly digest: string;
  readonly revision: string;
  readonly input_bytes: number;
}

const STATUS_COLUMNS = [
  "name",
  "type",
  "queue",
  "cron",
  "time_zone",
  "every_ms",
  "missed",
  "enabled",
  "paused",
  "next_at",
  "last_at",
  "last_task",
  "trouble",
] as const;

const lookStatement = statement<SeenRow>({
  name: "look_at_schedule",
  text: `select name, type, queue, cron, time_zone, every_ms, missed, enabled, paused, to_json(next_at) as next_at, to_json(last_at) as last_at,
      last_task::text as last_task, trouble,
      digest, revision::text as revision, input_bytes
    from sluice.schedule_status where name = $1`,
  params: ["text"],
  columns: [...STATUS_COLUMNS, "digest", "revision", "input_bytes"],
});

const listStatement = statement<StatusRow>({
  name: "list_schedules",
  text: `select name, type, queue, cron, time_zone, every_ms, missed, enabled, paused, to_json(next_at) as next_at, to_json(last_at) as last_at,
      last_task::text as last_task, trouble
    from sluice.schedule_status where name > $1 order by name limit $2`,
  params: ["text", "int8"],
  columns: STATUS_COLUMNS,
});

const clockStatement = statement<{ now_ms: number }>({
  name: "clock",
  text: "select floor(extract(epoch from sluice.clock()) * 1000)::float8 as now_ms",
  params: [],
  columns: ["now_ms"],
});

/** The schedule with this name, or null. */
export async function lookAtSchedule(db: Database, name: string): Promise<SeenSchedule | null> {
  const [row] = await db.run(lookStatement, [name]);
  if (row === undefined) return null;
  const { digest, revision, input_bytes } = row;
  return { status: statusOf(row), digest, revision, inputBytes: input_bytes };
}

/** At most `max` schedules after this name, ordered by name. */
export async function listSchedules(db: Database, after: string, max: number): Promise<ScheduleStatus[]> {
  return (await db.run(listStatement, [after, max])).map(statusOf);
}

/** The database's clock: the clock of this process may be an hour off. */
export async function clockMs(db: Database): Promise<number> {
  return (await db.one(clockStatement, [])).now_ms;
}

function statusOf(row: StatusRow): ScheduleStatus {
  const { name, type, queue, cron, missed, enabled, paused, trouble } = row;
  return {
    name,
    type,
    queue,
    cron,
    timeZone: row.time_zone,
    everyMs: row.every_ms === null ? null : Number(row.every_ms),
    missed,
    enabled,
    paused,
    nextAt: dateOf(row.next_at),
    lastAt: dateOf(row.last_at),
    lastTaskId: row.last_task,
    trouble,
  };
}

/** What `set` writes: everything that a keeper needs to enqueue a tick without the task's definition. */
export interface ScheduleTerms {
  readonly digest: string;
  readonly stream: number;
  /** JSON text, with a placeholder for the tick's time. */
  readonly input: string;
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly everyMs: number | null;
  readonly missed: Missed;
  readonly priority: number;
  readonly attempts: number;
  readonly orderKey: string | null;
  readonly orderBlocks: boolean;
  readonly limitNames: readonly string[];
  /** '' for a limit without keys. */
  readonly limitKeys: readonly string[];
  readonly enabled: boolean;
}

const setStatement = statement<{ set: boolean }>({
  name: "set_schedule",
  text: `select sluice.set_schedule($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) as set`,
  params: [
    "text",
    "int8",
    "text",
    "int4",
    "json",
    "text",
    "text",
    "int8",
    "text",
    "int4",
    "int4",
    "text",
    "bool",
    "_text",
    "_text",
    "bool",
    "timestamptz",
  ],
  columns: ["set"],
});

/** Writes a schedule, unless it has changed since it was read (null: there was none). */
export async function setSchedule(
  db: Database,
  name: string,
  seen: string | null,
  terms: ScheduleTerms,
  nextAt: Date,
): Promise<boolean> {
  const values = [
    name,
    seen,
    terms.digest,
    terms.stream,
    terms.input,
    terms.cron,
    terms.timeZone,
    terms.everyMs,
    terms.missed,
    terms.priority,
    terms.attempts,
    terms.orderKey,
    terms.orderBlocks,
    terms.limitNames,
    terms.limitKeys,
    terms.enabled,
    nextAt.toISOString(),
  ];
  return (await db.one(setStatement, values)).set;
}

const pauseStatement = statement<{ paused: boolean }>({
  name: "pause_schedule",
  text: "select sluice.pause_schedule($1) as paused",
  params: ["text"],
  columns: ["paused"],
});

/** Pauses a schedule: once this returns, no tick of it is enqueued. False if there is no such schedule. */
export async function pauseSchedule(db: Database, name: string): Promise<boolean> {
  return (await db.one(pauseStatement, [name])).paused;
}

const resumeStatement = statement<{ resumed: boolean }>({
  name: "resume_schedule",
  text: "select sluice.resume_schedule($1, $2, $3) as resumed",
  params: ["text", "int8", "timestamptz"],
  columns: ["resumed"],
});

/** Resumes a schedule, unless it has changed since it was read. */
export async function resumeSchedule(db: Database, name: string, seen: string, nextAt: Date): Promise<boolean> {
  return (await db.one(resumeStatement, [name, seen, nextAt.toISOString()])).resumed;
}

const removeStatement = statement<{ name: string }>({
  name: "remove_schedule",
  text: "delete from sluice.schedule where name = $1 returning name",
  params: ["text"],
  columns: ["name"],
});

/** Removes a schedule. False if there is no such schedule. */
export async function removeSchedule(db: Database, name: string): Promise<boolean> {
  return (await db.run(removeStatement, [name])).length > 0;
}

const triggerStatement = statement<{ id: string | null }>({
  name: "trigger_schedule",
  text: "select sluice.trigger_schedule($1, $2)::text as id",
  params: ["text", "text"],
  columns: ["id"],
});

/** Enqueues now what a tick would. Returns the task's id, or null if there is no such schedule. */
export async function triggerSchedule(db: Database, name: string): Promise<string | null> {
  return (await db.one(triggerStatement, [name, tickTime])).id;
}

/** The keeper's connection, or the pool of a client. */
export interface Runner {
  run<Row>(s: Statement<Row>, values: unknown[]): Promise<Row[]>;
}

/** A schedule that is due, as it was read. */
export interface DueSchedule {
  readonly name: string;
  readonly revision: string;
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly everyMs: number | null;
  readonly missed: Missed;
  readonly nextAtMs: number;
  /** 0 where it does not matter. */
  readonly inputBytes: number;
}

interface DueRow {
  readonly due: readonly DueSchedule[] | null;
  readonly now_ms: number;
  readonly wait_ms: number | null;
}

const dueStatement = statement<DueRow>({
  name: "due_schedules",
  text: "select due, now_ms, wait_ms from sluice.due_schedules($1)",
  params: ["int4"],
  columns: ["due", "now_ms", "wait_ms"],
});

/** Schedules that are due, the clock time that decided it, and how long until the next one. */
export async function dueSchedules(
  runner: Runner,
  max: number,
): Promise<{ due: readonly DueSchedule[]; nowMs: number; waitMs: number | null }> {
  const [row] = await runner.run(dueStatement, [max]);
  return { due: row?.due ?? [], nowMs: row?.now_ms ?? 0, waitMs: row?.wait_ms ?? null };
}

/**
 * fired: we enqueued its ticks. taken: it has changed since it was read. refused: its tasks cannot be enqueued as they
 * are.
 */
export interface FireAnswer {
  readonly answer: "fired" | "taken" | "refused";
  readonly trouble: string | null;
}

const fireStatement = statement<FireAnswer>({
  name: "fire_schedule",
  text: "select answer, trouble from sluice.fire_schedule($1, $2, $3, $4, $5)",
  params: ["text", "int8", "_text", "timestamptz", "text"],
  columns: ["answer", "trouble"],
});

/** Enqueues ticks and advances the schedule, in one transaction, unless the schedule has changed since it was read. */
export async function fireSchedule(
  runner: Runner,
  seen: Pick<DueSchedule, "name" | "revision">,
  ticks: readonly Date[],
  nextAt: Date,
): Promise<FireAnswer> {
  const times = ticks.map((tick) => tick.toISOString());
  const values = [seen.name, seen.revision, times, nextAt.toISOString(), tickTime];
  const [row] = await runner.run(fireStatement, values);
  return row ?? { answer: "taken", trouble: null };
}
