import type { Database } from "./database.js";
import { statement } from "./statement.js";
import { dateOf, type TimeText } from "./time.js";

/** A running task that holds a slot of a limit. */
export interface LimitHolder {
  readonly task: string;
  readonly type: string;
  readonly queue: string;
  /** The key that it uses the limit with; null for a total. */
  readonly key: string | null;
  /** When it started. */
  readonly since: Date;
  /** The name of its worker; null once the worker is gone. */
  readonly worker: string | null;
}

interface HolderRow {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly key: string | null;
  readonly since: TimeText;
  readonly worker: string | null;
}

// Reads the running tasks, of which there are at most as many as workers have capacity for.
const holdersStatement = statement<HolderRow>({
  name: "limit_holders",
  text: `select r.id::text as id, s.type, s.queue, t.lane_keys[array_position(t.lane_limits, l.id)] as key,
      to_json(r.started_at) as since, w.name as worker
    from sluice.limits l
    cross join sluice.running r
    cross join lateral (
      select k.stream, k.lane_limits, k.lane_keys from sluice.task k where k.id = r.id limit 1) t
    join sluice.stream s on s.id = t.stream
    left join sluice.worker w on w.id = r.worker
    where l.name = $1
      and (r.gate = l.id or r.stream_gate = l.id
        or r.gate < 0 and l.id = any (sluice.gates_of(r.gate))
        or r.lanes is not null and l.id = any (t.lane_limits))
    order by r.started_at, r.id
    limit $2`,
  params: ["text", "int8"],
  columns: ["id", "type", "queue", "key", "since", "worker"],
});

/** At most `max` running tasks that hold a slot of the limit, longest-running first. */
export async function limitHolders(db: Database, name: string, max: number): Promise<LimitHolder[]> {
  const rows = await db.run(holdersStatement, [name, max]);
  return rows.map(({ id, since, ...rest }) => ({ task: id, ...rest, since: dateOf(since) }));
}
