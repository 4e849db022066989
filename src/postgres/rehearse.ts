import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

// Statements of the test kit for a database of its own. They never run on any other database.

/** The clock of a test database: it stands still at the time that was set. Until then it is the server's clock. */
export const standingClock = statement<Record<string, never>>({
  name: "standing_clock",
  text: `create or replace function sluice.clock() returns timestamptz language sql volatile as
    $$ select coalesce((select value::timestamptz from sluice.setting where name = 'clock'), clock_timestamp()) $$`,
  params: [],
  columns: [],
});

const setClockStatement = statement<{ value: string }>({
  name: "set_clock",
  text: `with kept as (
      update sluice.worker set expires_at = $1::text::timestamptz + lease_ms * interval '1 millisecond'
      where id = $2)
    insert into sluice.setting (name, value) values ('clock', $1)
    on conflict (name) do update set value = excluded.value returning value`,
  params: ["text", "int8"],
  columns: ["value"],
});

/** Sets the time. `beating`: an active worker, which counts as having sent its heartbeats all the while. */
export async function setClock(connection: Connection, time: Date, beating: string | null): Promise<void> {
  await connection.run(setClockStatement, [time.toISOString(), beating]);
}

const expireStatement = statement<{ id: string }>({
  name: "expire",
  text: "update sluice.worker set expires_at = sluice.clock() where id = $1 returning id::text as id",
  params: ["int8"],
  columns: ["id"],
});

/** Expires a worker's lease now. */
export async function expire(connection: Connection, worker: string): Promise<void> {
  await connection.run(expireStatement, [worker]);
}

/** A task of a type, as stored in the database. Times are text. */
export interface EnqueuedRow {
  readonly id: string;
  readonly state: string;
  readonly priority: number;
  readonly attempt: number;
  readonly input: unknown;
  readonly runAt: string | null;
  readonly order: string | null;
  readonly limits: readonly { readonly limit: string; readonly key: string | null }[];
  readonly idempotencyKey: string | null;
}

// Returned as one text, so that every driver's transaction gives the same value.
const enqueuedStatement = statement<{ tasks: string }>({
  name: "enqueued",
  text: `select coalesce(json_agg(json_build_object('id', t.id::text, 'state', t.state, 'priority', t.priority, 'attempt', t.attempt,
      'input', t.input, 'runAt', t.run_at, 'order', case when t.lane_limits[1] in (0, -1) then t.lane_keys[1] end,
      'limits', (select coalesce(json_agg(json_build_object('limit', l.name, 'key', x.key) order by l.id, x.key), '[]') from (
        select u.limit_id, u.key from unnest(t.lane_limits, t.lane_keys) u(limit_id, key) where u.limit_id > 0
        union all select g, null from unnest(sluice.gates_of(t.gate)) g where g <> all (coalesce(t.lane_limits, '{}'))) x
        join sluice.limits l on l.id = x.limit_id),
      'idempotencyKey', (select i.key from sluice.idempotency i where i.type = t.type and i.id = t.id)) order by t.id), '[]')::text as tasks
    from (select * from sluice.task_state s where s.type = $1 and s.queue = $2 order by s.id limit $3) t`,
  params: ["text", "text", "int8"],
  columns: ["tasks"],
});

/** The first max tasks of a type, oldest first; with tx, including what that transaction has not committed. */
export async function enqueuedTasks(
  db: Database,
  of: { readonly type: string; readonly queue: string },
  max: number,
  tx?: Queryable,
): Promise<readonly EnqueuedRow[]> {
  const { tasks } = await db.one(enqueuedStatement, [of.type, of.queue, max], tx);
  return JSON.parse(tasks) as EnqueuedRow[];
}

/** A type with unfinished tasks, or with tasks that a run is about to create. */
interface UnservedRow {
  readonly type: string;
  readonly queue: string;
  /** The oldest unfinished task; null if a run has not created it yet, which needs the code of the type. */
  readonly task: string | null;
}

const unservedStatement = statement<UnservedRow>({
  name: "unserved",
  text: `select s.type, s.queue, min(x.id)::text as task
    from (
      select t.stream, t.id from sluice.task t where not exists (select from sluice.done d where d.id = t.id)
      union all
      select coalesce(n.stream, w.stream), null
      from sluice.workflow_node n
      join sluice.workflow_run r on r.id = n.run and not r.pruning
      left join sluice.workflow_step w on w.graph = r.graph and w.node = n.node
      where n.state = 'placing') x
    join sluice.stream s on s.id = x.stream
    where s.id <> all ($1::text::int[])
    group by s.id order by min(x.id), s.type, s.queue`,
  params: ["text"],
  columns: ["type", "queue", "task"],
});

/** The types with work to do whose stream is not among these, by their oldest task. */
export async function unservedTypes(
  connection: Connection,
  served: readonly number[],
): Promise<readonly UnservedRow[]> {
  return connection.run(unservedStatement, [`{${served.join(",")}}`]);
}
