// Every release is kept as a tarball and as a database with unfinished work. The current code must take over both.
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { restoreSchema } from "../../scripts/release/dump.js";
import { unpack, type Fixture } from "../../scripts/release/fixture.js";
import * as source from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { until } from "../flow/scene.js";
import { connected, freshDatabase, type TestDatabase } from "../support/database.js";
import { spawnTs, type SpawnedTs } from "../support/process.js";
import { catalogOf } from "./catalog.js";
import { fixtures, type Fixtures } from "./fixtures.js";
import { EFFECTS, TOTAL, working } from "./programs/handlers.js";
import { ALONE_MAX, SHARED_MAX, TENANT_MAX, worldOf, type Name } from "./programs/world.js";

const MADE_WITHIN_MS = 300_000;
const ENDS_WITHIN_MS = 120_000;
const TEN_YEARS_MS = 315_360_000_000;
// The programs run without a loader: the sources are transpiled once for all tests.
const sourceAddress = pathToFileURL(join(process.env["SLUICE_TEST_JS"]!, "src/index.js")).href;
const world = worldOf(source);
const everything = Object.keys(world.tasks) as Name[];

let kept: Fixtures;
let opened: TestDatabase[];
const running: SpawnedTs[] = [];

beforeAll(async () => {
  opened = [];
  kept = await fixtures();
}, MADE_WITHIN_MS);
afterAll(async () => {
  await Promise.all(running.map((one) => one.kill("SIGKILL")));
  for (const database of opened) await database.drop();
  kept?.remove();
});

async function database(): Promise<string> {
  const fresh = await freshDatabase();
  opened.push(fresh);
  return fresh.url;
}

async function rowsOf<T extends pg.QueryResultRow>(url: string, text: string): Promise<T[]> {
  return connected(url, async (client) => (await client.query<T>(text)).rows);
}

/** Runs a function for each release in turn, each with its own database. */
async function forEach(use: (fixture: Fixture, url: string) => Promise<void>): Promise<void> {
  expect(kept.all.length).toBeGreaterThan(0);
  for (const fixture of kept.all) await use(fixture, await database());
}

/** Restores a dump as if a year had passed: all its times are older by that much. */
async function restore(url: string, { dump }: Fixture): Promise<void> {
  await connected(url, async (client) => {
    await restoreSchema(client, readFileSync(dump));
    const { rows } = await client.query<{ text: string }>(AGE);
    for (const { text } of rows) await client.query(text);
    await client.query(EFFECTS);
  });
}

const AGE = `
  select format('update sluice.%I set %I = %I - interval %L', c.relname, a.attname, a.attname, '1 year') as text
  from pg_attribute a join pg_class c on c.oid = a.attrelid
  where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r' and a.atttypid = 'timestamptz'::regtype
    and a.attnum > 0 and not a.attisdropped`;
// Otherwise failed tasks are pruned before they are retried.
const history = { succeededMs: TEN_YEARS_MS, failedMs: TEN_YEARS_MS, cancelledMs: TEN_YEARS_MS };

const LIVE = `select t.id::text from sluice.task t
  where not exists (select from sluice.done d where d.id = t.id and d.state <> 'failed') order by t.id`;
const FAILED = "select id::text from sluice.done where state = 'failed' order by id";

test("the stored database of every release has work in every state", async () => {
  await forEach(async (fixture, url) => {
    await restore(url, fixture);
    const sluice = await source.Sluice.connect({ url, listen: false });
    try {
      const { ready, waiting, scheduled, running: begun, failed } = await sluice.counts();
      expect(Math.min(ready, waiting, scheduled, begun, failed)).toBeGreaterThan(0);
      expect(await sluice.limits.get("shared")).toMatchObject({ total: 1 });
      expect((await sluice.runs()).runs.map(({ state }) => state)).toEqual(
        expect.arrayContaining(["running", "paused"]),
      );
      expect(await sluice.schedules.get("paused")).toMatchObject({ paused: true });
      const again = await sluice.start(world.workflows.fan, { key: "fan", n: 0 }, { idempotencyKey: "fan" });
      expect(again.existed).toBe(true);
    } finally {
      await sluice.close();
    }
  });
});

test(
  "the current code migrates and drains the database of every release, and every task succeeds exactly once",
  async () => {
    await forEach(async (fixture, url) => {
      await restore(url, fixture);
      const live = await rowsOf<{ id: string }>(url, LIVE);
      expect(live.length).toBeGreaterThan(30);
      await drain(url);
      const effects = await rowsOf<{ task: string; n: number }>(
        url,
        "select task::text, count(*)::int as n from effect group by task order by task",
      );
      // Runs create tasks during the drain, so there are more tasks than before.
      expect(effects.filter(({ n }) => n !== 1)).toEqual([]);
      const done = new Set(effects.map(({ task }) => task));
      expect(live.filter(({ id }) => !done.has(id))).toEqual([]);
      expect(await rowsOf(url, "select * from sluice.violations()")).toEqual([]);
    });
  },
  ENDS_WITHIN_MS,
);

/** Runs everything with the current code, and does what waits for an operator. */
async function drain(url: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const sluice = await source.Sluice.connect({ url, logger: silentLogger, history });
  try {
    const handlers = working(world, everything, pool, "today");
    await sluice.worker({ handlers, pollIntervalMs: 50, leaseMs: 2_000 }).start();
    await sluice.resume("held");
    for (const { id } of await rowsOf<{ id: string }>(url, FAILED)) expect(await sluice.retry(id)).toBe(true);
    const { runs } = await sluice.runs();
    const results = runs.map(async ({ id, workflow, state }) => {
      if (workflow === "approve") await sluice.run(id, world.workflows.approve).send("approved", TOTAL);
      if (state === "paused") await sluice.run(id).resume();
      return [workflow, await sluice.run(id).result({ timeoutMs: ENDS_WITHIN_MS })];
    });
    for (const [workflow, result] of await Promise.all(results))
      if (workflow === "fan" || workflow === "approve") expect(result).toEqual({ total: TOTAL });
    await until("all tasks to end", () => isDrained(sluice), ENDS_WITHIN_MS);
  } finally {
    await sluice.close();
    await pool.end();
  }
}

async function isDrained(sluice: source.Sluice): Promise<boolean> {
  const { succeeded: _, cancelled: __, ...others } = await sluice.counts();
  return Object.values(others).every((n) => n === 0);
}

test("a new schema equals an upgraded one of every release", async () => {
  const fresh = await database();
  await migrate(fresh);
  const expected = await connected(fresh, catalogOf);
  expect(expected.length).toBeGreaterThan(500);
  await forEach(async (fixture, url) => {
    await connected(url, (client) => restoreSchema(client, readFileSync(fixture.dump)));
    await migrate(url);
    expect(await connected(url, catalogOf)).toEqual(expected);
  });
});

async function migrate(url: string): Promise<void> {
  await (await source.Sluice.connect({ url, listen: false })).close();
}

/** A program and the problems that it reported. */
function start(program: string, ...args: string[]): SpawnedTs & { readonly trouble: () => string[] } {
  const spawned = spawnTs(`test/upgrade/programs/${program}.ts`, args);
  running.push(spawned);
  let said = "";
  spawned.child.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()));
  return { ...spawned, trouble: () => said.split("\n").filter((line) => line !== "") };
}

const ROUNDS = 60;
const TYPES: Name[] = ["plain", "ordered", "keyed", "alone", "list", "item", "sum", "mapper"];

test(
  "processes of a release and of the current code share a database under load without losing or doubling a task",
  async () => {
    await forEach(async ({ tarball }, url) => {
      const old = await unpack(tarball, tmpdir());
      try {
        await connected(url, (client) => client.query(EFFECTS));
        await shareLoad(url, old.address);
        await checkEffects(url);
      } finally {
        old.remove();
      }
    });
  },
  ENDS_WITHIN_MS * 2,
);

/** A rolling deploy: old processes work, new ones migrate and join, the old ones leave. */
async function shareLoad(url: string, old: string): Promise<void> {
  const worker = (address: string) => start("worker", address, url, "work", ...TYPES);
  const producer = (address: string, name: string) => start("producer", address, url, name, String(ROUNDS));
  const isUp = (line: string): boolean => line === "up";
  const before = worker(old);
  await before.line(isUp);
  const producers = [producer(old, "old")];
  const after = worker(sourceAddress);
  await after.line(isUp);
  producers.push(producer(sourceAddress, "new"), producer(old, "late"));
  for (const one of producers) expect([await one.exit, one.trouble()]).toEqual([0, []]);
  expect(await before.kill()).toBe(0);
  const sluice = await source.Sluice.connect({ url });
  await until("all tasks to end", () => isDrained(sluice), ENDS_WITHIN_MS);
  for (const { id, workflow } of (await sluice.runs()).runs)
    if (workflow === "fan") expect(await sluice.run(id).result()).toEqual({ total: TOTAL });
  await sluice.close();
  expect(await after.kill()).toBe(0);
  expect([...before.trouble(), ...after.trouble()]).toEqual([]);
}

interface Effect {
  readonly task: string;
  readonly type: string;
  readonly key: string | null;
  readonly n: number;
  readonly process: string;
  readonly began: number;
  readonly ended: number;
}

const EFFECTS_IN_ORDER = `select task::text, type, key, n, process, extract(epoch from began)::float8 as began,
  extract(epoch from ended)::float8 as ended from effect order by effect.began`;

async function checkEffects(url: string): Promise<void> {
  const effects = await rowsOf<Effect>(url, EFFECTS_IN_ORDER);
  const [{ n: tasks }] = (await rowsOf<{ n: number }>(url, "select count(*)::int as n from sluice.task")) as [
    { n: number },
  ];
  expect(effects).toHaveLength(tasks);
  expect(new Set(effects.map(({ task }) => task)).size).toBe(tasks);
  expect(effects.filter(({ type }) => type === "plain")).toHaveLength(3 * ROUNDS);
  // Otherwise they have not worked side by side.
  expect(new Set(effects.map(({ process }) => process)).size).toBe(2);
  const of = (type: string, key?: string): Effect[] =>
    effects.filter((effect) => effect.type === type && (key === undefined || effect.key === key));
  expect(atOnce(of("alone"))).toBeLessThanOrEqual(ALONE_MAX);
  expect(atOnce(of("keyed"))).toBeLessThanOrEqual(SHARED_MAX);
  for (const key of ["a", "b"]) expect(atOnce(of("keyed", key)), key).toBeLessThanOrEqual(TENANT_MAX);
  for (const key of new Set(of("ordered").map((effect) => effect.key!))) {
    const line = of("ordered", key);
    expect(atOnce(line), key).toBe(1);
    expect(
      line.map(({ n }) => n),
      key,
    ).toEqual(line.map(({ n }) => n).toSorted((a, b) => a - b));
  }
  expect(await rowsOf(url, "select * from sluice.violations()")).toEqual([]);
}

/** The maximum that ran at the same time. */
function atOnce(effects: readonly Effect[]): number {
  const moments = effects.flatMap(({ began, ended }) => [
    { at: began, step: 1 },
    { at: ended, step: -1 },
  ]);
  let [now, most] = [0, 0];
  for (const { step } of moments.toSorted((a, b) => a.at - b.at || a.step - b.step))
    most = Math.max(most, (now += step));
  return most;
}
