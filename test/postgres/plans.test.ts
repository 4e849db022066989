import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { pages } from "../support/pages.js";
import { fill, STAGE } from "./backlog.js";

// What may hold a million rows. The others have a row per type, limit or worker, or are notes.
const BIG = ["task", "ready", "gated", "waiting", "running", "scheduled", "done", "lane", "parked"];
const BATCH = 50;
// For each task of a batch: its row in task, in the table it leaves, its lane, what is next.
const ROWS_PER_TASK_MAX = 20;

interface Touched {
  /** Big tables that were read from end to end. */
  readonly scanned: string[];
  /** Rows fetched, by whatever way. */
  readonly rows: number;
}

interface Hand {
  readonly ids: readonly string[];
  readonly claim: string;
}

let database: TestDatabase;
let admin: pg.Client;
/** Plans everything while the tables are empty, and keeps those plans as long as it lives. */
let veteran: pg.Client;
let worker: string;
let tokens = 1_000;

beforeAll(async () => {
  database = await freshDatabase({ migrated: true });
  admin = await connect();
  veteran = await connect();
  await admin.query(STAGE);
  const { rows } = await admin.query<{ id: string }>("select sluice.register('w', '{1,2,3}', 3600000, 1000) as id");
  worker = rows[0]!.id;
}, 60_000);

afterAll(async () => {
  await Promise.all([admin.end(), veteran.end()]);
  await database.drop();
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client(database.url);
  await client.connect();
  await client.query("set synchronous_commit = off");
  return client;
}

/** How many rows the work fetches, by whatever way, and what it answers. */
async function touchedRows<T>(
  client: pg.Client,
  work: () => Promise<T>,
): Promise<{ readonly fetched: number; readonly answer: T }> {
  const sum = async (): Promise<number> =>
    [...(await counts(client)).values()].reduce((all, { rows }) => all + rows, 0);
  const before = await sum();
  const answer = await work();
  return { fetched: (await sum()) - before, answer };
}

/** Counts the work alone, in a transaction that is rolled back: every call finds the same. */
async function touched(client: pg.Client, prepare: () => Promise<() => Promise<unknown>>): Promise<Touched> {
  await client.query("begin");
  try {
    const work = await prepare();
    const before = await counts(client);
    await work();
    const after = await counts(client);
    const delta = [...after].map(([table, now]) => {
      const was = before.get(table) ?? { scans: 0, rows: 0 };
      return { table, scans: now.scans - was.scans, rows: now.rows - was.rows };
    });
    return {
      scanned: delta.filter((d) => d.scans > 0 && BIG.includes(d.table)).map((d) => d.table),
      rows: delta.reduce((sum, d) => sum + d.rows, 0),
    };
  } finally {
    await client.query("rollback");
  }
}

async function counts(client: pg.Client): Promise<Map<string, { scans: number; rows: number }>> {
  const { rows } = await client.query<{ relname: string; scans: string; rows: string }>(
    `select relname, seq_scan as scans, seq_tup_read + coalesce(idx_tup_fetch, 0) as rows
     from pg_stat_xact_user_tables where schemaname = 'sluice'`,
  );
  return new Map(rows.map((r) => [r.relname, { scans: Number(r.scans), rows: Number(r.rows) }]));
}

const pagesOf = (c: pg.Client, text: string, values: unknown[]): Promise<number> =>
  pages(async (t, v) => (await c.query(t, v)).rows, text, values);

/** Tasks to work with: ready, at an open gate, each in a lane of its own, and due. */
async function provide(c: pg.Client): Promise<void> {
  const list = (of: (i: number) => string): string => Array.from({ length: BATCH * 2 }, (_, i) => of(i)).join("\u001e");
  const inputs = list(() => "{}");
  await c.query("select sluice.enqueue_many(1, 0, 25, $1)", [inputs]);
  await c.query("select sluice.enqueue_many(2, 0, 25, $1, '{3}')", [inputs]);
  await c.query("select sluice.enqueue_many(3, 0, 25, $1, '{2}', $2)", [inputs, list((i) => `key-${i}`)]);
  await c.query(
    `insert into sluice.scheduled select id, sluice.clock(), 0, 0 from sluice.ready where stream = 1 order by rank, turn limit ${BATCH}`,
  );
  await c.query(
    `delete from sluice.ready where stream = 1 and id = any (array(select id from sluice.scheduled where run_at <= sluice.clock()))`,
  );
}

async function step(c: pg.Client, streams: number[], n: number, done?: Hand): Promise<Hand> {
  const claim = String(tokens++);
  const { rows } = await c.query<{ id: string }>(
    "select id from sluice.step($1, $2, $3, $4, $5, $6) where id is not null",
    [worker, claim, streams, n, done?.ids ?? null, done?.ids.map(() => done.claim) ?? null],
  );
  return { ids: rows.map((r) => r.id), claim };
}

const steps =
  (streams: number[], n = BATCH / 2) =>
  (c: pg.Client): Promise<Touched> =>
    touched(c, async () => {
      await provide(c);
      const hand = await step(c, streams, n);
      return async () => expect((await step(c, streams, n, hand)).ids).toHaveLength(n);
    });

const settles =
  (kind: string) =>
  (c: pg.Client): Promise<Touched> =>
    touched(c, async () => {
      await provide(c);
      const { ids, claim } = await step(c, [1, 2, 3], BATCH);
      const all = (x: string): string[] => ids.map(() => x);
      return () =>
        c.query("select sluice.settle($1, $2, $3, $4, $5, null)", [worker, ids, all(claim), all(kind), all("1000")]);
    });

const verbs: Record<string, (c: pg.Client) => Promise<Touched>> = {
  "step, plain": steps([1]),
  "step, at a gate": steps([2]),
  "step, in lanes": steps([3]),
  "step, of all": steps([1, 2, 3]),
  "settle, retry": settles("retry"),
  "settle, fail": settles("fail"),
  "settle, snooze": settles("snooze"),
  "settle, cancel": settles("cancel"),
  "settle, release": settles("release"),
  due: (c) =>
    touched(c, async () => {
      await provide(c);
      return () => c.query("select sluice.due(100)");
    }),
  cancel: (c) =>
    touched(c, async () => {
      await provide(c);
      const hand = await step(c, [1], 10);
      const { rows } = await c.query<{ id: string }>(
        `(select id from sluice.scheduled order by run_at limit 10) union all
         (select id from sluice.gated where stream = 2 and gate = 3 order by rank, turn limit 10) union all
         (select id from sluice.ready where stream = 1 order by rank, turn limit 10) union all
         (select id from sluice.waiting where lane = (3::bigint << 60) | 1 order by place, id limit 10)`,
      );
      const ids = [...hand.ids, ...rows.map((r) => r.id)];
      return () => c.query("select count(*) from sluice.cancel($1)", [ids]);
    }),
};

test("the plan check detects a table that is read from end to end", async () => {
  const seen = await touched(admin, async () => {
    await provide(admin);
    return () => admin.query("select from sluice.ready where attempt = 7");
  });
  expect(seen.scanned).toEqual(["ready"]);
  expect(seen.rows).toBe(BATCH * 2 - BATCH);
});

// One after the other: the sizes grow, and the veteran's plans stay.
const sizes = [
  { size: "empty tables, as analysed", add: 0, analyse: true },
  { size: "1,000 rows in each table, analysed when they were empty", add: 1_000, analyse: false },
  { size: "1,000 rows in each table, as analysed", add: 0, analyse: true },
  { size: "200,000 rows in each table, analysed when they had 1,000", add: 199_000, analyse: false },
  { size: "200,000 rows in each table, as analysed", add: 0, analyse: true },
];

describe.each(sizes.map((one) => [one.size, one] as const))("with %s:", (_, { add, analyse }) => {
  let young: pg.Client;

  beforeAll(async () => {
    if (add > 0) await fill(admin, add);
    if (analyse) await admin.query("analyze");
    young = await connect();
  }, 60_000);

  afterAll(() => young.end());

  test.each(Object.keys(verbs))("%s reads no table from end to end", async (verb) => {
    for (const client of [young, veteran]) {
      const seen = await verbs[verb]!(client);
      expect(seen.scanned).toEqual([]);
      expect(seen.rows).toBeLessThan(BATCH * ROWS_PER_TASK_MAX);
    }
  });
});

// Rows that an index passes over are in no count, but their pages are.
test("a claim reads few pages beside 200,000 blocked tasks and 200,000 of an unserved stream", async () => {
  const most = BATCH * 25;
  await veteran.query("begin");
  try {
    await provide(veteran);
    // Takes the notes of tasks that have just joined their lanes.
    await step(veteran, [3], 1);
    for (const streams of [[1], [2], [1, 2, 3]]) {
      const values = [worker, String(tokens++), streams, 20];
      const seen = await pagesOf(veteran, "select id from sluice.step($1, $2, $3, $4)", values);
      expect(seen).toBeLessThan(most);
    }
    const walk = "select count(*) from sluice.gated where stream = 2 and gate = $1";
    expect(await pagesOf(veteran, walk, [1])).toBeGreaterThan(most);
  } finally {
    await veteran.query("rollback");
  }
});

test("a claim beside 2,000 full groups examines some of them, and finds those with room in turn", async () => {
  await veteran.query("begin");
  try {
    await veteran.query(`
      select sluice.declare_limit('group-' || i, 1, null) from generate_series(1, 2000) i;
      insert into sluice.task (id, stream, rank, attempts_max, gate, input) select 9000000 + id, 2, 0, 1, id, '{}' from sluice.limits where name like 'group-%';
      insert into sluice.gated (id, stream, gate, rank, attempt, turn) select 9000000 + id, 2, id, 0, 0, sluice.own_turn(9000000 + id) from sluice.limits where name like 'group-%';
      update sluice.gate set used = 1 where id in (select id from sluice.limits where name like 'group-%' and name not like '%00')`);
    // What other tests have left to be noticed is not this claim's work.
    await veteran.query("select sluice.admit_dirty(1000000)");
    const found = new Set<string>();
    for (let i = 0; i < 400 && found.size < 20; i++) {
      const token = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
      const values = [worker, token, [2], 5];
      const rows = await touchedRows(veteran, () =>
        veteran.query<{ id: string }>("select id from sluice.step($1, $2, $3, $4)", values),
      );
      expect(rows.fetched).toBeLessThan(1_000);
      for (const { id } of rows.answer.rows) found.add(id);
    }
    expect(found.size).toBe(20);
  } finally {
    await veteran.query("rollback");
  }
});

interface PlanNode {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows that the nodes of a plan returned or filtered out. */
function rowsOf(node: PlanNode): number {
  const removed = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Join Filter"] ?? 0);
  const own = (node["Actual Rows"] + removed) * node["Actual Loops"];
  return (node.Plans ?? []).reduce((sum, child) => sum + rowsOf(child), own);
}

test("a cancel costs in proportion to the number of its ids", async () => {
  const costOf = async (count: number): Promise<number> => {
    const ids = Array.from({ length: count }, (_, i) => i + 1);
    const half = ids.slice(count / 2);
    const { rows } = await veteran.query<{ "QUERY PLAN": [{ Plan: PlanNode }] }>(
      "explain (analyze, format json) select * from sluice.cancel_answers($1, $2, '{}')",
      [ids, half],
    );
    return rowsOf(rows[0]!["QUERY PLAN"][0].Plan);
  };
  const small = await costOf(2_000);
  // Else it is not the plan of the function's own statement that was counted.
  expect(small).toBeGreaterThan(4_000);
  expect(await costOf(4_000)).toBeLessThan(2.5 * small);
});

// Without numbers the planner takes a limit's tasks for a handful, and would sort them all for each claim.
test("a claim at a gate with 400,000 tasks reads only what it takes, also in tables never analysed", async () => {
  const fresh = await freshDatabase({ migrated: true });
  const client = new pg.Client(fresh.url);
  await client.connect();
  try {
    await client.query(STAGE);
    const { rows } = await client.query<{ id: string }>("select sluice.register('w', '{1,2,3}', 3600000, 1000) as id");
    const inputs = Array.from({ length: 400_000 }, () => "{}").join("\u001e");
    await client.query("select sluice.enqueue_many(2, 0, 25, $1, '{3}')", [inputs]);
    await client.query("begin");
    let hand: Hand = { ids: [], claim: "" };
    for (let i = 0; i < 4; i++) {
      const claim = String(tokens++);
      const values = [rows[0]!.id, claim, [2], 10, hand.ids, hand.ids.map(() => hand.claim)];
      const { fetched, answer } = await touchedRows(client, () =>
        client.query<{ id: string }>("select id from sluice.step($1, $2, $3, $4, $5, $6)", values),
      );
      expect(answer.rows).toHaveLength(10);
      expect(fetched).toBeLessThan(10 * ROWS_PER_TASK_MAX);
      hand = { ids: answer.rows.map((r) => r.id), claim };
    }
  } finally {
    await client.end();
    await fresh.drop();
  }
});

test("a claim that starts at the last head passes over no dead rows beside an old snapshot", async () => {
  const fresh = await freshDatabase({ migrated: true });
  const [client, holder] = [new pg.Client(fresh.url), new pg.Client(fresh.url)];
  await Promise.all([client.connect(), holder.connect()]);
  try {
    await client.query(STAGE);
    const { rows } = await client.query<{ id: string }>("select sluice.register('w', '{1,2,3}', 3600000, 1000) as id");
    const inputs = Array.from({ length: 30_100 }, () => "{}").join("\u001e");
    for (const [stream, limits] of [
      [1, null],
      [2, "{3}"],
    ])
      await client.query("select sluice.enqueue_many($1, 0, 25, $2, $3)", [stream, inputs, limits]);
    await holder.query("begin isolation level repeatable read");
    await holder.query("select count(*) from sluice.task");
    const text = "select id from sluice.step($1, $2, $3, $4, p_spots => $5)";
    const claim = (n: number, spots: string | null): unknown[] => [rows[0]!.id, String(tokens++), [1, 2, 3], n, spots];
    for (const stream of [1, 2]) {
      const { rows: taken } = await client.query<{ id: string }>(text, claim(30_000, null));
      const last = taken.map(({ id }) => Number(id)).reduce((a, b) => Math.max(a, b));
      const spots = `{"(${stream},${stream === 1 ? 0 : 3},0,${last * 2 ** 20})"}`;
      await client.query("begin");
      const everywhere = await pagesOf(client, text, claim(5, null));
      const fromThere = await pagesOf(client, text, claim(5, spots));
      await client.query("rollback");
      // Their pages in the table and in the index.
      expect(everywhere - fromThere).toBeGreaterThan(200);
    }
  } finally {
    await Promise.all([client.end(), holder.end()]);
    await fresh.drop();
  }
});
