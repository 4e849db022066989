import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Database } from "../../src/postgres/database.js";
import { listLimits } from "../../src/postgres/limits.js";
import { readSlots } from "../../src/postgres/slots.js";
import { freshDatabase, type TestDatabase } from "../support/database.js";

const FEW = 10_000;
const MANY = 60_000;

let database: TestDatabase;
let client: pg.Client;
let db: Database;

beforeAll(async () => {
  database = await freshDatabase({ migrated: true });
  client = new pg.Client(database.url);
  await client.connect();
  db = new Database({
    url: database.url,
    pool: undefined,
    schema: "sluice",
    prepare: true,
    apiConnections: 1,
  });
  await client.query("select sluice.declare_contract('t', 'default', 0, 1, false, null, false, null, 1)");
  await client.query("select sluice.declare_limit('keyed', null, 5)");
  await client.query("update sluice.stream set laned = true");
}, 60_000);

afterAll(async () => {
  await client.end();
  await db.close();
  await database.drop();
});

/** Groups, each with a set that it shares with the first of them. */
async function groups(from: number, to: number): Promise<void> {
  await client.query(
    `insert into sluice.limits (name, total_declared, transient)
      select 'group-' || to_char(n, 'FM000000'), 1, true from generate_series($1::int, $2::int) n`,
    [from, to],
  );
  await client.query(
    `insert into sluice.gate (id, cap) select id, 1 from sluice.limits where transient on conflict do nothing`,
  );
  await client.query(
    `insert into sluice.gate_stream select id, 1 from sluice.limits where transient on conflict do nothing`,
  );
  await client.query(
    `select sluice.gate_of(array[x.first, l.id]) from sluice.limits l,
      (select min(id) as first from sluice.limits where transient) x where transient and l.id > x.first`,
  );
  await client.query("analyze");
}

/** Blocks that a statement reads, most of them from memory. */
async function blocks(text: string): Promise<number> {
  const { rows } = await client.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, format json) ${text}`,
  );
  const { Plan: plan } = rows[0]!["QUERY PLAN"][0];
  return plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!;
}

const STATEMENTS = {
  "a scrape": "select * from sluice.limit_slots(array['group-000001', 'keyed'], 50)",
  "the count of limits": "select sluice.limit_count(1000)",
  "the kinds that cannot run": "select * from sluice.closed_kinds()",
  "slots that are kept": "select sluice.keep_slots()",
  "what the keeper does for lanes": "select sluice.keep_lanes(500)",
  "a piece of the keeper's look for unused groups": "select * from sluice.forget_limits(0, 100, 3600000)",
} as const;

test("queries of limits cost no more beside 60,000 groups than beside 10,000", async () => {
  const costs = async (): Promise<number[]> => {
    const all: number[] = [];
    for (const text of Object.values(STATEMENTS)) {
      // The first time a session runs a function it reads catalogues, and again when others have changed many tables.
      all.push(Math.min(await blocks(text), await blocks(text), await blocks(text)));
    }
    return all;
  };
  await groups(1, FEW);
  // Tasks at a few of the limits, and one at two totals, so that there is data.
  const inputs = Array.from({ length: 20 }, () => "1").join("\u001e");
  await client.query("select from sluice.enqueue_many(1, 0, 1, $1, '{3}')", [inputs]);
  await client.query("select from sluice.enqueue_many(1, 0, 1, '1', '{3,4}')");
  const few = await costs();
  await groups(FEW + 1, MANY);
  const many = await costs();
  const names = Object.keys(STATEMENTS);
  const grown = names.filter((_, i) => many[i]! > 1.5 * few[i]! + 20);
  expect(grown, names.map((name, i) => `${name}: ${few[i]} -> ${many[i]}`).join("; ")).toEqual([]);
}, 120_000);

test("limits are listed in pages, and a scrape reports a few and counts the others", async () => {
  const page = { after: "", prefix: "group-0399", max: 100 };
  expect(await listLimits(db, page)).toHaveLength(100);
  const last = await listLimits(db, { ...page, after: "group-059999", prefix: "group-" });
  expect(last.map(({ name }) => name)).toEqual(["group-060000"]);
  const { slots, omitted } = await readSlots(db, ["group-020000"], 50);
  expect(slots[0]).toMatchObject({ group: "group-020000", slots: 1, used: 0 });
  expect(slots).toHaveLength(50);
  expect(omitted).toBe(10_000);
});

test("a scrape reports the limits with the most running tasks", async () => {
  await client.query(
    `insert into sluice.running (id, claim, worker, attempt, started_at, gate, stream_gate)
      select n, 1, 1, 1, now(), l.id, 0 from sluice.limits l, generate_series(1, 3) n where l.name = 'group-030000'`,
  );
  const { slots } = await readSlots(db, [], 50);
  expect(slots.map(({ group }) => group)).toContain("group-030000");
});
