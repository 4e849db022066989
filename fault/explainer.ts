// Asks once a second why some of the waiting tasks do not run. The audit looks for those that could.
import type pg from "pg";
import { couldRun } from "./audit/starved.js";
import type { Hold, Waiting } from "./audit/line.js";
import type { Log } from "./stage.js";

const PERIOD_MS = 1_000;
/** From each table of waiting tasks: so many of the oldest, as many at random, and as many that look runnable. */
const EACH = 4;
/** Those that could run by the last sample are asked about again, so many at most. */
const AGAIN_MAX = 40;

const oldest = (table: string): string => `(select id from sluice.${table} order by id limit ${EACH})`;
const some = (table: string): string => `(select id from sluice.${table} order by random() limit ${EACH})`;

// One statement, so that all of it is one snapshot. `kinds`: tasks that only wait for totals.
const ASK = `
with kinds as materialized (
  select g.stream, g.gate, count(*) as n, min(g.id) as first,
    least(sluice.gate_room(g.gate, null, null), sluice.gate_room(s.gate, null, null)) as room
  from sluice.gated g join sluice.stream s on s.id = g.stream group by g.stream, g.gate, s.gate
), chosen as (
  ${["ready", "gated", "waiting", "parked"].flatMap((table) => [oldest(table), some(table)]).join(" union ")}
  union (select first from kinds where room > 0 order by first limit ${EACH})
  union (select w.id from sluice.waiting w join sluice.lane l on l.id = w.lane
    where l.used < sluice.cap_of(l.cap, l.limit_id) order by w.id limit ${EACH})
  union (select id from sluice.scheduled where run_at <= sluice.clock() order by run_at, id limit ${EACH})
  union select unnest($1::bigint[])
)
select
  ((select count(*) from sluice.ready) + coalesce((select sum(least(n, greatest(0, room))) from kinds), 0))::int as open,
  (select coalesce(sum(capacity_available), 0) from sluice.worker where not draining and pressure <> 'stopped'
    and expires_at > sluice.clock() and not sluice.is_silent(expires_at, lease_ms))::int as room,
  (select coalesce(json_agg(json_build_object('explained', x.explained, 'first', x.first)), '[]') from (
    select sluice.explain(c.id, false) as explained, not exists (
        select from unnest(sluice.gates_of(t.gate) || s.gate) total where total > 0 and (
          not sluice.is_first_at(total, t.rank, coalesce(g.turn, r.turn, sluice.own_turn(t.id)))
          or exists (select from sluice.gate k where k.id = total and k.kept_for <> t.id))) as first
    from chosen c join sluice.task t on t.id = c.id join sluice.stream s on s.id = t.stream
    left join sluice.gated g on g.id = c.id left join sluice.ready r on r.id = c.id) x) as tasks`;

interface Answer {
  readonly open: number;
  readonly room: number;
  readonly tasks: readonly {
    readonly explained: {
      readonly task: string;
      readonly type: string;
      readonly reasons: readonly Told[];
    };
    readonly first: boolean;
  }[];
}

interface Holder {
  readonly task: string;
  readonly type: string;
  readonly state: string;
}

/** A reason as the database tells it. */
interface Told {
  readonly kind: string;
  readonly limit?: string;
  readonly node?: string;
  readonly key?: string | null;
  readonly slots?: number;
  readonly before?: number | null;
  readonly holder?: Holder | null;
  readonly holders?: readonly Holder[];
}

export class Explainer {
  readonly #sql: pg.Pool;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #asking: Promise<void> | undefined;
  #again: readonly string[] = [];

  constructor(sql: pg.Pool, log: Log) {
    this.#sql = sql;
    this.#log = log;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    }, PERIOD_MS);
  }

  /** What was asked is written down. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#asking;
  }

  async #ask(): Promise<void> {
    const answer = await this.#answer();
    if (answer === null) return;
    const tasks = answer.tasks.map(waitingOf);
    const { open, room } = answer;
    this.#again = tasks.filter((one) => couldRun(one) !== null).map(({ task }) => task);
    await this.#log.write([{ kind: "explained", open, room, tasks }]);
  }

  /** Null while the server is away: what was not asked is a gap between samples. */
  async #answer(): Promise<Answer | null> {
    try {
      const { rows } = await this.#sql.query<Answer>(ASK, [this.#again.slice(0, AGAIN_MAX)]);
      return rows[0] ?? null;
    } catch {
      return null;
    }
  }
}

function waitingOf({ explained, first }: Answer["tasks"][number]): Waiting {
  const { task, type, reasons } = explained;
  return { task, type, first, reasons: reasons.map(holdOf) };
}

function holdOf({ kind, limit, node, key, slots, before, holder, holders }: Told): Hold {
  const all = holders ?? (holder === undefined || holder === null ? [] : [holder]);
  return {
    kind,
    name: limit ?? node ?? null,
    key: key ?? null,
    ...(slots === undefined ? {} : { slots }),
    before: before ?? null,
    holders: all.map(({ task, type, state }) => ({ task, type, runs: state === "running" })),
  };
}
