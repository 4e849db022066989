import type { Database } from "./database.js";
import { statement } from "./statement.js";
import { dateOf, type TimeText } from "./time.js";

/** A number of tasks. */
export interface TaskCount {
  readonly count: number;
  /** Counting stopped here; there may be more. */
  readonly more: boolean;
}

/** A queue and the tasks in it that have not ended. */
export interface QueueSummary {
  readonly name: string;
  readonly paused: boolean;
  /**
   * Tasks by state. At most 1,000 tasks of a type are counted in each of the places where tasks wait, and at most 10,000
   * rows of all queues together in the places that are not sorted by type.
   */
  readonly tasks: Readonly<Record<"scheduled" | "waiting" | "ready" | "running", TaskCount>>;
  /**
   * Since when the oldest of the counted tasks could have run: its enqueue, or its time if it was for later. Only tasks
   * that are waiting or ready, except those that wait for their own fan-out; null if there is none.
   */
  readonly oldestAt: Date | null;
  /** Live workers that serve a type of this queue and are not shutting down. */
  readonly workers: number;
  /** The time of this snapshot, by the database's clock. */
  readonly at: Date;
}

interface QueueRow {
  readonly name: string;
  readonly paused: boolean;
  readonly scheduled: number;
  readonly scheduled_more: boolean;
  readonly waiting: number;
  readonly waiting_more: boolean;
  readonly ready: number;
  readonly ready_more: boolean;
  readonly running: number;
  readonly running_more: boolean;
  readonly oldest_at: TimeText | null;
  readonly workers: number;
  readonly at: TimeText;
}

/** Tasks counted per type and table where an index finds them by type; and rows read of a table without one. */
const LINE_MAX = 1_000;
const SCAN_MAX = 10_000;

const listStatement = statement<QueueRow>({
  name: "list_queues",
  text: `with queues as materialized (
      select q.name, q.paused from sluice.queue q where q.name > $1 order by q.name limit $2
    ), streams as materialized (
      select s.id, s.queue from sluice.stream s join queues q on q.name = s.queue
    ), line as (
      select s.queue, s.id as stream, y.state, y.place, coalesce(t.due_at, t.created_at) as since
      from streams s
      cross join lateral (
        (select 'ready' as state, 1 as place, r.id from sluice.ready r
          where r.stream = s.id order by r.rank, r.turn limit $3)
        union all
        (select 'waiting', 2, g.id from sluice.gated g
          where g.stream = s.id order by g.gate, g.rank, g.turn limit $3)
        union all
        (select 'waiting', 3, p.id from sluice.parked p
          where p.stream = s.id order by p.gate, p.rank, p.id limit $3)) y
      cross join lateral (select k.due_at, k.created_at from sluice.task k where k.id = y.id limit 1) t
    ), scheduled as materialized (
      select c.id from sluice.scheduled c order by c.run_at, c.id limit $4
    ), waiting as materialized (
      select w.id from sluice.waiting w limit $4
    ), parent as materialized (
      select p.id from sluice.parent p limit $4
    ), suspect as materialized (
      select c.id from sluice.suspect c limit $4
    ), running as materialized (
      select r.id from sluice.running r limit $4
    ), scan as materialized (
      select t.stream, y.state, case when y.ages then coalesce(t.due_at, t.created_at) end as since
      from (
        select 'scheduled' as state, false as ages, id from scheduled
        union all select 'waiting', true, id from waiting
        union all select 'waiting', false, id from parent
        union all select 'ready', true, id from suspect
        union all select 'running', false, id from running) y
      cross join lateral (select k.stream, k.due_at, k.created_at from sluice.task k where k.id = y.id limit 1) t
    ), counted as (
      select queue, state, count(*) as n, count(*) >= $3 as more, min(since) as since
      from line group by queue, stream, state, place
      union all
      select s.queue, y.state, count(*), false, min(y.since)
      from scan y join streams s on s.id = y.stream group by s.queue, y.state
    )
    select q.name, q.paused,
      coalesce(sum(c.n) filter (where c.state = 'scheduled'), 0)::int as scheduled,
      (select count(*) from scheduled) >= $4 as scheduled_more,
      coalesce(sum(c.n) filter (where c.state = 'waiting'), 0)::int as waiting,
      coalesce(bool_or(c.more) filter (where c.state = 'waiting'), false)
        or (select count(*) from waiting) >= $4 or (select count(*) from parent) >= $4 as waiting_more,
      coalesce(sum(c.n) filter (where c.state = 'ready'), 0)::int as ready,
      coalesce(bool_or(c.more) filter (where c.state = 'ready'), false)
        or (select count(*) from suspect) >= $4 as ready_more,
      coalesce(sum(c.n) filter (where c.state = 'running'), 0)::int as running,
      (select count(*) from running) >= $4 as running_more,
      to_json(min(c.since)) as oldest_at,
      (select count(*) from sluice.worker w
        where w.streams && array(select s.id from streams s where s.queue = q.name)
          and not w.draining and w.expires_at > sluice.clock())::int as workers,
      to_json(sluice.clock()) as at
    from queues q
    left join counted c on c.queue = q.name
    group by q.name, q.paused
    order by q.name`,
  params: ["text", "int8", "int8", "int8"],
  columns: [
    "name",
    "paused",
    "scheduled",
    "scheduled_more",
    "waiting",
    "waiting_more",
    "ready",
    "ready_more",
    "running",
    "running_more",
    "oldest_at",
    "workers",
    "at",
  ],
});

/** At most `max` queues after this name, ordered by name. */
export async function listQueues(db: Database, after: string, max: number): Promise<QueueSummary[]> {
  return (await db.run(listStatement, [after, max, LINE_MAX, SCAN_MAX])).map(summaryOf);
}

function summaryOf(row: QueueRow): QueueSummary {
  return {
    name: row.name,
    paused: row.paused,
    tasks: {
      scheduled: { count: row.scheduled, more: row.scheduled_more },
      waiting: { count: row.waiting, more: row.waiting_more },
      ready: { count: row.ready, more: row.ready_more },
      running: { count: row.running, more: row.running_more },
    },
    oldestAt: dateOf(row.oldest_at),
    workers: row.workers,
    at: dateOf(row.at),
  };
}
