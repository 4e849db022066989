import type pg from "pg";

/**
 * Streams 1 plain, 2 gated, 3 laned are served; 4 is not. Limit 1 is a total that is full, 2 is per
 * key, 3 a total that never binds. Nothing may be analysed behind our back: what is tried is a plan
 * that was made when the tables were of another size.
 */
export const STAGE = `
  do $$
  declare name text;
  begin
    for name in select tablename from pg_tables where schemaname = 'sluice' loop
      execute format('alter table sluice.%I set (autovacuum_enabled = off)', name);
    end loop;
    perform sluice.declare_limit('full', 1, null);
    perform sluice.declare_limit('tenant', null, 1);
    perform sluice.declare_limit('open', 100000, null);
    foreach name in array '{plain,gated,laned,unserved}'::text[] loop
      perform sluice.declare_contract(name, 'default', 0, 25, false, null, false, '{1,2,3}', null);
    end loop;
  end $$;
  update sluice.gate set used = 1 where id = 1;
`;

/** n tasks behind the full gate, n of the unserved stream; n / 4 wait, are scheduled, run. */
export async function fill(admin: pg.Client, n: number): Promise<void> {
  const quarter = Math.floor(n / 4);
  await insert(admin, n, { stream: 2, gate: 1 }, "gated", "id, 2, 1, 0, 0, sluice.own_turn(id)");
  await insert(admin, n, { stream: 4 }, "ready", "id, 4, 0, 0, sluice.own_turn(id)");
  const lane = "array[(3::bigint << 60) | (1 + id % 100)]";
  await admin.query(
    "insert into sluice.lane select (3::bigint << 60) | i, 2, 1, 1 from generate_series(1, 100) i on conflict do nothing",
  );
  const waiting = `id, (${lane})[1], 0, 0, 0, 0, 3, 0, ${lane}, '{2}'`;
  await insert(admin, quarter, { stream: 3, lane }, "waiting", waiting);
  await insert(admin, quarter, { stream: 1 }, "scheduled", "id, now() + interval '1 day', 0, 0");
  await insert(admin, quarter, { stream: 1 }, "running", "id, 1, 1, 1, now(), 0, 0");
}

async function insert(
  admin: pg.Client,
  n: number,
  task: { readonly stream: number; readonly gate?: number; readonly lane?: string },
  table: string,
  columns: string,
): Promise<void> {
  await admin.query(
    `with ids as materialized (select nextval('sluice.task_id') as id from generate_series(1, ${n})),
    tasks as (
      insert into sluice.task (id, stream, rank, attempts_max, gate, lanes, lane_limits, input)
      select id, ${task.stream}, 0, 25, ${task.gate ?? 0}, ${task.lane ?? "null"}, ${task.lane === undefined ? "null" : "'{2}'"}, '{}' from ids)
    insert into sluice.${table} select ${columns} from ids`,
  );
}
