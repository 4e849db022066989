import type { PressureState } from "../core/pressure.js";
import type { Database } from "./database.js";
import { statement } from "./statement.js";
import { dateOf, type TimeText } from "./time.js";

/** A registered worker, as of its last heartbeat. */
export interface WorkerSummary {
  /** Unique; a worker that loses its lease registers under a new id. */
  readonly id: string;
  readonly name: string;
  /**
   * - live: its heartbeats arrive.
   * - draining: it is shutting down and claims nothing.
   * - silent: it has missed a heartbeat.
   * - lost: its lease has expired, and its tasks will be released.
   */
  readonly state: "live" | "draining" | "silent" | "lost";
  /** The types that it serves, by queue. */
  readonly serves: readonly { readonly queue: string; readonly type: string }[];
  /** How many tasks it can execute at once. */
  readonly capacity: number;
  /** Tasks that it holds now. At most 100,000 running tasks are counted over all workers. */
  readonly inUse: number;
  /** How many more tasks it would claim. */
  readonly available: number;
  readonly memoryBytes: number;
  readonly pressure: PressureState;
  /** The most connections that its process may open. */
  readonly connections: number;
  readonly startedAt: Date;
  /** Its last heartbeat. */
  readonly heardAt: Date;
  readonly leaseMs: number;
  readonly leaseUntil: Date;
  /** The time of this snapshot, by the database's clock. */
  readonly at: Date;
}

interface WorkerRow {
  readonly id: string;
  readonly name: string;
  readonly draining: boolean;
  readonly serves: WorkerSummary["serves"];
  readonly capacity_max: number;
  readonly capacity_available: number;
  readonly held: number;
  readonly memory_bytes: string;
  readonly pressure: PressureState["state"];
  readonly pressure_reasons: PressureState["reasons"];
  readonly connections: number;
  readonly started_at: TimeText;
  readonly lease_ms: number;
  readonly lease_until: TimeText;
  readonly at: TimeText;
}

const HELD_MAX = 100_000;

const listStatement = statement<WorkerRow>({
  name: "list_workers",
  text: `with held as (
      select r.worker, count(*)::int as n from (select x.worker from sluice.running x limit $2) r group by r.worker
    )
    select w.id::text as id, w.name, w.draining,
      (select coalesce(json_agg(json_build_object('queue', s.queue, 'type', s.type) order by s.queue, s.type), '[]')
        from sluice.stream s where s.id = any (w.streams)) as serves,
      w.capacity_max, w.capacity_available, coalesce(h.n, 0) as held, w.memory_bytes::text as memory_bytes,
      w.pressure, w.pressure_reasons, w.connections, to_json(w.started_at) as started_at, w.lease_ms,
      to_json(w.expires_at) as lease_until, to_json(sluice.clock()) as at
    from sluice.worker w
    left join held h on h.worker = w.id
    order by w.name, w.id
    limit $1`,
  params: ["int8", "int8"],
  columns: [
    "id",
    "name",
    "draining",
    "serves",
    "capacity_max",
    "capacity_available",
    "held",
    "memory_bytes",
    "pressure",
    "pressure_reasons",
    "connections",
    "started_at",
    "lease_ms",
    "lease_until",
    "at",
  ],
});

/** At most `max` workers, ordered by name. */
export async function listWorkers(db: Database, max: number): Promise<WorkerSummary[]> {
  return (await db.run(listStatement, [max, HELD_MAX])).map(summaryOf);
}

function summaryOf(row: WorkerRow): WorkerSummary {
  const leaseUntil = dateOf(row.lease_until);
  const heardAt = new Date(leaseUntil.getTime() - row.lease_ms);
  const at = dateOf(row.at);
  return {
    id: row.id,
    name: row.name,
    state: stateOf(row, heardAt, leaseUntil, at),
    serves: row.serves,
    capacity: row.capacity_max,
    inUse: row.held,
    available: row.capacity_available,
    memoryBytes: Number(row.memory_bytes),
    pressure: { state: row.pressure, reasons: row.pressure_reasons },
    connections: row.connections,
    startedAt: dateOf(row.started_at),
    heardAt,
    leaseMs: row.lease_ms,
    leaseUntil,
    at,
  };
}

function stateOf(row: WorkerRow, heardAt: Date, leaseUntil: Date, at: Date): WorkerSummary["state"] {
  if (at >= leaseUntil) return "lost";
  if (row.draining) return "draining";
  // As in functions/explain/is_silent.sql, which readers may not call.
  const silentAfterMs = Math.min(row.lease_ms / 3, 5_000) * 1.5;
  return at.getTime() > heardAt.getTime() + silentAfterMs ? "silent" : "live";
}
