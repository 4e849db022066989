import { expect, test } from "vitest";
import { until, type Scene } from "../flow/scene.js";
import { startFleet, startMember } from "../support/fleet.js";
import { chain, CREATE_SEEN, fan, LINKS, parent } from "../worker/programs/contracts.js";
import { numbers, workflowScene } from "./scene.js";

const PROGRAM = "test/worker/programs/flow.ts";
const patience = { timeoutMs: 60_000 };

interface Seen {
  readonly process: string;
  readonly what: string;
  readonly flow: number;
  readonly at: number;
  readonly kind: string;
}

async function stage(): Promise<Scene> {
  const s = await workflowScene();
  await s.sql.query(CREATE_SEEN);
  return s;
}

async function seen({ sql }: Scene, what: string): Promise<Seen[]> {
  const { rows } = await sql.query<Seen>("select process, what, flow, at, kind from seen where what = $1 order by n", [
    what,
  ]);
  return rows;
}

const of = (rows: readonly Seen[], kind: string): number[] => rows.filter((r) => r.kind === kind).map((r) => r.at);
const ascending = (a: number, b: number): number => a - b;

test("a workflow of 10 tasks keeps its order", { timeout: 120_000 }, async () => {
  const s = await stage();
  await startFleet(PROGRAM, 3, () => ({ url: s.url, types: ["link"] }));
  const runs = await Promise.all(numbers(100).map((flow) => s.sluice.start(chain, { flow })));
  for (const run of runs) await run.result(patience);
  const rows = await seen(s, "link");
  const inOrder = numbers(LINKS).flatMap((at) => [`start ${at}`, `end ${at}`]);
  for (const flow of numbers(100)) {
    const its = rows.filter((r) => r.flow === flow).map(({ kind, at }) => `${kind} ${at}`);
    expect(its, `of run ${flow}`).toEqual(inOrder);
  }
  expect(new Set(rows.map((r) => r.process)).size).toBe(3);
});

test("100 workflows run concurrently", { timeout: 120_000 }, async () => {
  const s = await stage();
  await startFleet(PROGRAM, 3, () => ({ url: s.url, types: ["link"], meet: 100 }));
  const runs = await Promise.all(numbers(100).map((flow) => s.sluice.start(chain, { flow })));
  for (const run of runs) await run.result(patience);
  const rows = await seen(s, "link");
  let [under, peak] = [0, 0];
  for (const { kind } of rows) peak = Math.max(peak, (under += kind === "start" ? 1 : -1));
  // Each workflow runs one task at a time, so 100 at once means that all ran concurrently.
  expect(peak).toBe(100);
  expect([rows.length, under]).toEqual([2 * 100 * LINKS, 0]);
});

test("a worker that is killed with items in hand loses none, and no item completes twice", async () => {
  const s = await stage();
  const config = { url: s.url, types: ["item"], leaseMs: 1_000 };
  const doomed = await startMember(PROGRAM, "doomed", { ...config, hangFrom: 4 });
  const run = await s.sluice.start(fan, { flow: 0, items: numbers(12) });
  for (const at of [4, 5, 6]) await doomed.process.line((line) => line === `item ${at}`);
  await doomed.kill();
  await startMember(PROGRAM, "heir", config);
  expect(await run.result(patience)).toMatchObject({
    results: numbers(12),
    counts: { total: 12, succeeded: 12 },
  });
  const rows = await seen(s, "item");
  expect(of(rows, "end").toSorted(ascending)).toEqual(numbers(12));
  // Only tasks of the dead worker started a second time.
  const again = rows.filter((r) => r.process === "heir" && r.kind === "start").map((r) => r.at);
  expect(again.toSorted(ascending)).toEqual(numbers(12).slice(4));
});

test.each([true, false])(
  "a map continues after a crash of its worker without repeating finished items (hold: %s)",
  async (hold) => {
    const s = await stage();
    const config = { url: s.url, types: ["parent", "item"], leaseMs: 1_000 };
    const doomed = await startMember(PROGRAM, "doomed", { ...config, hangFrom: 5 });
    const handle = await s.sluice.enqueue(parent, { flow: 0, items: 10, hold });
    for (const at of [5, 6, 7]) await doomed.process.line((line) => line === `item ${at}`);
    const state = hold ? "running" : "waiting";
    await until("the parent's state", async () => (await handle.status())?.state === state);
    await doomed.kill();
    await startMember(PROGRAM, "heir", config);
    expect(await handle.result(patience)).toBe(10);
    const rows = await seen(s, "item");
    expect(of(rows, "end").toSorted(ascending)).toEqual(numbers(10));
    const again = rows.filter((r) => r.process === "heir" && r.kind === "start").map((r) => r.at);
    expect(again.toSorted(ascending)).toEqual(numbers(10).slice(5));
    // Neither the crash nor the wait has used an attempt.
    expect(new Set(of(await seen(s, "parent"), "start"))).toEqual(new Set([1]));
  },
);

const MIB = 1024;

test("a fan-out of 100,000 items with keys is created in one transaction and bounded memory", async () => {
  const s = await stage();
  const items = 100_000;
  const placed = async (): Promise<number> => {
    const { rows } = await s.sql.query<{ n: number }>("select count(*)::int as n from sluice.workflow_task");
    return rows[0]!.n;
  };
  const member = await startMember(PROGRAM, "m", {
    url: s.url,
    types: ["parent", "item"],
    hangFrom: 0,
  });
  const run = await s.sluice.start(fan, { flow: 0, items: numbers(items) });
  const counts: number[] = [];
  await until(
    "the items of the workflow",
    async () => {
      counts.push(await placed());
      return counts.at(-1) === items;
    },
    120_000,
  );
  // All or none: no query ever saw a part of them.
  expect(new Set(counts)).toEqual(new Set([0, items]));
  await s.sluice.enqueue(parent, { flow: 1, items, hold: false });
  await until("the items of the map", async () => (await placed()) === 2 * items, 120_000);
  const said = member.process.line((line) => line.startsWith("rss "));
  await member.end();
  const rss = Number((await said).slice("rss ".length)) / MIB;
  expect(rss, "MiB at most").toBeLessThan(200);
  await run.cancel();
}, 300_000);
