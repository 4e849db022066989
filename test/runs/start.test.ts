import { describe, expect, test } from "vitest";
import { z } from "zod";
import { limit, task, workflow } from "../../src/index.js";
import { until, type Scene } from "../flow/scene.js";
import { rowsOf, workflowScene } from "./scene.js";

const PATIENCE = { timeoutMs: 30_000 };
const perTenant = limit("tenant", { perKey: 1 });
const keyed = task("keyed", {
  input: z.object({ tenant: z.string(), n: z.number() }),
  order: ({ n }) => (n % 2 === 0 ? "even" : undefined),
  limits: ({ tenant }) => (tenant === "free" ? [] : [perTenant.for(tenant)]),
  retry: { attempts: 1 },
});
const item = z.object({ tenant: z.string(), n: z.number() });
const roots = workflow("roots", { input: z.object({ items: z.array(z.any()) }) }, (w, input) => {
  w.each("all", keyed, input.items, (one) => one as never, { window: 4, onError: "collect" });
  w.task("one", keyed, { tenant: "one", n: 1 });
});
const unplaced = (s: Scene) => rowsOf<{ node: number }>(s, "select node from sluice.workflow_unplaced order by node");
const lanes = (s: Scene) =>
  rowsOf<{ keys: string[] | null; item: number; node: number }>(
    s,
    "select t.lane_keys as keys, w.item, w.node from sluice.task t join sluice.workflow_task w using (id) order by w.node, w.item",
  );

describe("nodes that need code, at the start of a run", () => {
  const items = [
    { tenant: "a", n: 1 },
    { tenant: "a", n: 2 },
    { tenant: "free", n: 3 },
    { tenant: "b", n: 4 },
  ];

  test("the client that starts a run places its first nodes, with the keys of each input", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(roots, { items });
    expect(await unplaced(s)).toEqual([]);
    const window = `${run.id}:1`;
    expect(await lanes(s)).toEqual([
      { node: 1, item: 0, keys: [window, "a"] },
      { node: 1, item: 1, keys: ["even", window, "a"] },
      { node: 1, item: 2, keys: [window] },
      { node: 1, item: 3, keys: ["even", window, "b"] },
      { node: 2, item: 0, keys: ["one"] },
    ]);
    const seen: unknown[] = [];
    await s.worker({ handlers: [keyed.handle(async (input) => void seen.push(input))] });
    await run.result(PATIENCE);
    expect(seen).toHaveLength(5);
  });

  test("the first nodes are placed in the caller's transaction, and rolled back with it", async () => {
    const s = await workflowScene();
    const client = await s.sql.connect();
    await client.query("begin");
    await s.sluice.start(roots, { items }, { tx: client });
    await client.query("rollback");
    expect([await unplaced(s), await lanes(s)]).toEqual([[], []]);
    await client.query("begin");
    await s.sluice.start(roots, { items }, { tx: client });
    await client.query("commit");
    client.release();
    expect([await unplaced(s), (await lanes(s)).length]).toEqual([[], 5]);
  });

  test.each([false, true])("an invalid input fails its node at the start of a run (in tx: %s)", async (inTx) => {
    const s = await workflowScene();
    const client = await s.sql.connect();
    await client.query("begin");
    const bad = { items: [...items, { tenant: 7, n: 1 }] };
    const run = await s.sluice.start(roots, bad, inTx ? { tx: client } : {});
    await client.query("commit");
    client.release();
    await s.worker({ handlers: [keyed.handle(async () => undefined)] });
    await expect(run.result(PATIENCE)).rejects.toMatchObject({
      code: "workflow_failed",
      message: expect.stringMatching(/node "all": the input is not valid.*\(item 4\)$/) as string,
      details: { nodes: [{ node: "all", error: { code: "input_invalid" } }] },
    });
    expect((await run.status())!.nodes.map(({ state }) => state)).toEqual(["failed", "succeeded"]);
  });

  test("a worker places long lists and runs started by name", async () => {
    const s = await workflowScene();
    const many = Array.from({ length: 1_001 }, (_, n) => ({ tenant: "free", n: 2 * n + 1 }));
    const long = await s.sluice.start(roots, { items: many });
    expect(await unplaced(s)).toEqual([{ node: 1 }]);
    const named = await s.sluice.start("roots", { items });
    expect(await unplaced(s)).toEqual([{ node: 1 }, { node: 1 }, { node: 2 }]);
    let seen = 0;
    await s.worker({
      handlers: [keyed.handle(async () => void seen++)],
      maxConcurrentTasks: 50,
      pollIntervalMs: 20,
    });
    await Promise.all([long.result(PATIENCE), named.result(PATIENCE)]);
    expect(seen).toBe(1_001 + 1 + 5);
    expect(await unplaced(s)).toEqual([]);
  });

  test("concurrent starts do not wait for each other's connections", async () => {
    const s = await workflowScene();
    const runs = await Promise.all(Array.from({ length: 30 }, () => s.sluice.start(roots, { items })));
    expect(new Set(runs.map(({ id }) => id)).size).toBe(30);
    expect(await unplaced(s)).toEqual([]);
  });
});

test("a number beyond the precision of JavaScript passes the placing unchanged", async () => {
  const s = await workflowScene();
  const exact = task("exact", { input: z.object({ n: z.number() }), order: () => "k" });
  const one = workflow("exact", { input: z.any() }, (w, input) => void w.task("one", exact, input));
  // Declares it; the input of the run below comes from another language.
  await s.sluice.start(one, { n: 1 });
  const [graph] = await rowsOf<{ id: number }>(s, "select id from sluice.workflow_graph");
  const huge = '{"n": 12345678901234567890123}';
  await s.sql.query("select sluice.workflow_start($1, $2)", [graph!.id, huge]);
  await s.worker({ handlers: [exact.handle(async () => undefined)], pollIntervalMs: 20 });
  const inputs = await until("both to be placed", async () => {
    const rows = await rowsOf<{ input: string }>(s, "select input::text from sluice.task order by id");
    return rows.length === 2 ? rows.map(({ input }) => input) : null;
  });
  expect(inputs[1]).toContain("12345678901234567890123");
});

test("a limit that was removed is declared again by the placer, and the run continues", async () => {
  const s = await workflowScene();
  const one = workflow("keyed", { input: item }, (w, input) => {
    w.task("one", keyed, input);
  });
  const handlers = [keyed.handle(async () => undefined)];
  const worker = await s.worker({ handlers, pollIntervalMs: 20 });
  await (await s.sluice.start(one, { tenant: "a", n: 1 })).result(PATIENCE);
  await worker.stop();
  expect(await s.sluice.limits.remove("tenant")).toBe(true);
  const run = await s.sluice.start(one, { tenant: "a", n: 1 });
  // Not left to a worker.
  expect(await unplaced(s)).toEqual([]);
  await s.worker({ handlers, pollIntervalMs: 20 });
  await run.result(PATIENCE);
});
