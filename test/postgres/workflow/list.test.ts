import { afterEach, expect, test } from "vitest";
import { pages } from "../../support/pages.js";
import { Play } from "./play.js";

let play: Play;
afterEach(async () => {
  await play.close();
});

interface Row {
  readonly id: number;
  readonly name: string;
  readonly state: string;
  readonly at: number;
}

const STATES = ["running", "paused", "cancelling", "succeeded", "failed", "cancelled", null];

/** Runs of three graphs, two of them with one name, in every state, and some maps of handlers. */
async function fill(count: number): Promise<void> {
  await play.db.rows(
    `insert into sluice.workflow_graph (id, name, digest, graph) overriding system value
      select n, case when n = 103 then 'b' else 'a' end, n::text, '{}' from generate_series(101, 103) n`,
  );
  await play.db.rows(
    `insert into sluice.workflow_run (id, graph, open, input, bytes_max, state, paused, stopping, created_at, finished_at, parent, name)
      select n, case when n % 7 > 0 then 101 + n % 3 end, 0, 'null', 1, (array['running', 'succeeded', 'failed', 'cancelled'])[1 + k]::sluice.state, k = 0 and n % 5 = 0, k = 0 and n % 5 = 1,
        sluice.clock() - (10000000 - n) * interval '1 s', case when k > 0 then sluice.clock() end, case when n % 7 = 0 then n end, case when n % 7 = 0 then 'm' end
      from (select n, case when n % 1000 < 40 then n % 4 else 1 end as k from generate_series(1, $1::int) n) x`,
    [count],
  );
}

test("every search of runs finds what a full scan finds, newest first", async () => {
  play = await Play.open({});
  await fill(2_000);
  const all = await play.db.rows<Row>(
    "select id::int, name, state, extract(epoch from created_at)::float8 as at from sluice.workflow_status where graph is not null order by workflow_status.id desc",
  );
  const since = all[Math.floor(all.length / 2)]!.at;
  let found = 0;
  for (const name of ["a", "b", "none", null])
    for (const state of STATES)
      for (const after of [since, null])
        for (const below of [1_010, null]) {
          const wanted = all.filter(
            (r) =>
              (name === null || r.name === name) &&
              (state === null || r.state === state) &&
              (after === null || r.at >= after) &&
              (below === null || r.id < below),
          );
          const rows = await play.db.rows<{ id: number }>(
            "select id::int from sluice.workflow_list($1, $2, to_timestamp($3), $4, 25)",
            [name, state, after, below],
          );
          expect(
            rows.map(({ id }) => id),
            JSON.stringify({ name, state, after, below }),
          ).toEqual(wanted.slice(0, 25).map(({ id }) => id));
          found += rows.length;
        }
  expect(found).toBeGreaterThan(500);
});

test("a page of runs reads a page, however many runs and maps there are", async () => {
  play = await Play.open({});
  await fill(60_000);
  await play.db.rows(
    "update sluice.workflow_run set graph = 101, parent = null, state = 'succeeded', finished_at = sluice.clock()",
  );
  // The newest are maps; very many of the one workflow have failed; and there is one of each other kind, among the oldest.
  await play.db.rows("update sluice.workflow_run set graph = null, parent = id, name = 'm' where id > 40000");
  await play.db.rows("update sluice.workflow_run set state = 'failed' where id between 10000 and 30000");
  await play.db.rows("update sluice.workflow_run set state = 'cancelled' where id = 9");
  await play.db.rows(
    "update sluice.workflow_run set state = 'running', finished_at = null, paused = id = 11 where id in (10, 11)",
  );
  await play.db.rows(
    "update sluice.workflow_run set graph = 103, state = case when id = 13 then 'failed' else 'succeeded' end::sluice.state where id in (12, 13)",
  );
  await play.db.script("vacuum analyze sluice.workflow_run");
  const found: Record<string, number> = {
    "null, null": 10,
    "null, 'succeeded'": 10,
    "'a', null": 10,
    "null, 'running'": 1,
    "'a', 'paused'": 1,
    "null, 'cancelling'": 0,
    "null, 'failed'": 10,
    "'b', 'failed'": 1,
    "null, 'cancelled'": 1,
    "'b', null": 2,
    "'none', null": 0,
  };
  for (const [args, count] of Object.entries(found)) {
    const text = `select * from sluice.workflow_list(${args}, null, null, 10)`;
    expect((await play.db.rows(text)).length, args).toBe(count);
    await play.db.begin();
    const seen = await pages((t) => play.db.rows(t), text);
    await play.db.rollback();
    expect(seen, args).toBeLessThan(100);
  }
});
