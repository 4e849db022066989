import { describe, expect, onTestFinished, test } from "vitest";
import { Client, isSluiceError, task, type, workflow } from "../../src/index.js";
import type { MapError, Run, RunItem, RunNode, SluiceError } from "../../src/index.js";
import { codeOf } from "../client/house.js";
import { signal, until, type Scene } from "../flow/scene.js";
import { after, fanOut, Hands, listener, numbers, rowsOf, work, workflowScene } from "./scene.js";

const PATIENCE = { timeoutMs: 30_000 };
const waits = workflow("waits", {}, (w) => ({ said: w.waitFor("said", "said") }));

async function nodeOf(run: Run, name: string): Promise<RunNode> {
  const { nodes } = (await run.status())!;
  return nodes.find((node) => node.name === name)!;
}

/** The error of a run that does not succeed. */
const failureOf = (run: Run): Promise<unknown> => run.result(PATIENCE).catch((e: unknown) => e);

/** Another client, which the database sees as another process. */
async function another(s: Scene): Promise<Client> {
  const client = await Client.connect({ url: s.url, migrate: false });
  onTestFinished(() => client.close());
  return client;
}

async function working(s: Scene): Promise<Hands> {
  const hands = new Hands();
  await s.worker({
    handlers: [hands.handler, listener().handler],
    maxConcurrentTasks: 20,
    pollIntervalMs: 20,
    leaseMs: 6_000,
  });
  return hands;
}

test("runs are listed by id, and no page leaves one out", async () => {
  const s = await workflowScene();
  for (let i = 0; i < 25; i++) await s.sluice.start(waits);
  const wanted = numbers(25).map((i) => String(25 - i));
  expect((await s.sluice.runs()).runs.map(({ id }) => id)).toEqual(wanted);
  const paged: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await s.sluice.runs({ limit: 4, ...(cursor === undefined ? {} : { cursor }) });
    paged.push(...page.runs.map(({ id }) => id));
    cursor = page.cursor;
    expect(paged.length).toBeLessThanOrEqual(25);
  }
  expect(paged).toEqual(wanted);
});

describe("the status of a node", () => {
  test("a failed node has its error, also if a branch has recovered from it", async () => {
    const s = await workflowScene();
    const broken = task("broken", { input: type<{ n: number }>(), retry: { attempts: 1 } });
    await s.worker({
      handlers: [
        broken.handle(async ({ n }) => {
          throw Object.assign(new TypeError(`no ${n}`), { code: "E_NO" });
        }),
        listener().handler,
      ],
      pollIntervalMs: 20,
    });
    const caught = workflow("caught", {}, (w) => {
      const bad = w.task("bad", broken, { n: 7 });
      w.onFailure(bad, (f) => void f.task("sorry", after, { n: 1 }), { recover: true });
      w.waitFor("never", "never", { timeoutMs: 1 });
    });
    const run = await s.sluice.start(caught);
    await failureOf(run);
    expect((await nodeOf(run, "bad")).error).toEqual({
      name: "TypeError",
      message: "no 7",
      code: "E_NO",
    });
    expect((await nodeOf(run, "never")).error).toMatchObject({ code: "timeout" });
    expect((await nodeOf(run, "sorry")).error).toBeNull();
  });

  test("a cancelled node has the reason, whether the run, a task or an item was cancelled", async () => {
    const s = await workflowScene();
    const hands = await working(s);
    const single = workflow("single", {}, (w) => w.task("only", work, { item: 100 }));
    const [whole, lone, each] = [
      await s.sluice.start(fanOut(2), { items: [1, 2, 3] }),
      await s.sluice.start(single),
      await s.sluice.start(fanOut(3), { items: [11, 12, 13, 14] }),
    ];
    await until("all to run", () => [1, 2, 100, 11, 12, 13].every((i) => hands.active.has(i)));
    await whole.cancel("wrong region");
    const { task: id } = await nodeOf(lone, "only");
    await s.sluice.task(id!).cancel({ reason: "not this one" });
    const { items } = await each.items("each", { after: 0, limit: 1 });
    await s.sluice.task(items[0]!.task).cancel({ reason: "not that one" });
    const failures = await Promise.all([whole, lone, each].map(failureOf));
    expect((await nodeOf(whole, "each")).error).toEqual({
      name: "SluiceError",
      message: "wrong region",
      code: "task_cancelled",
    });
    // It had not begun.
    expect(await nodeOf(whole, "last")).toMatchObject({ error: { message: "wrong region" } });
    expect((await nodeOf(lone, "only")).error!.message).toBe("not this one");
    expect((await nodeOf(each, "each")).error!.message).toBe("not that one");
    // The item that a user cancelled is blamed, and not those cancelled because of it.
    expect(failures[2]).toMatchObject({
      details: { nodes: [{ node: "each", item: 1, error: { reason: "not that one" } }] },
    });
    const { items: all } = await each.items("each");
    expect(all.map(({ error }) => error!.message)).toEqual([
      "another item failed or was cancelled",
      "not that one",
      "another item failed or was cancelled",
      "another item failed or was cancelled",
    ]);
  });

  test("a waiting node says for what and until when it waits", async () => {
    const s = await workflowScene();
    const until = new Date("2090-01-31T12:00:00.000Z");
    const slow = workflow("slow", { input: type<{ until: string }>() }, (w, input) => {
      w.sleep("nap", { until: input.until });
      w.waitFor("soon", "approved", { timeoutMs: 3_600_000 });
      w.waitFor("ever", "said");
    });
    const run = await s.sluice.start(slow, { until: until.toISOString() });
    const [nap, soon, ever] = (await run.status())!.nodes;
    expect(nap).toMatchObject({ state: "running", event: null, until });
    expect(soon).toMatchObject({ event: "approved" });
    const timers = "select due_at from sluice.workflow_timer where node = 2";
    expect(await rowsOf(s, timers)).toEqual([{ due_at: soon!.until }]);
    expect(ever).toMatchObject({ event: "said", until: null });
    await run.cancel();
    for (const node of (await run.status())!.nodes) expect(node.until).toBeNull();
  });

  test("a node whose type no live worker serves says so, also while it is being placed", async () => {
    const s = await workflowScene();
    const keyed = task("keyed", {
      input: type<{ n: number }>(),
      output: type<number>(),
      order: ({ n }) => String(n),
    });
    const flow = workflow("flow", {}, (w) => {
      w.task("plain", after, {});
      const first = w.task("first", keyed, { n: 1 });
      w.task("second", keyed, { n: first });
      w.waitFor("said", "said");
    });
    await s.sluice.sync([flow]);
    // A worker whose lease has ended serves nothing, although its row still exists.
    await s.sql.query(
      `insert into sluice.worker (id, name, streams, lease_ms, expires_at, connections, capacity_max, capacity_available)
        select 1, 'dead', array_agg(id), 1000, now() - interval '1 second', 0, 1, 1 from sluice.stream`,
    );
    const run = await s.sluice.start("flow");
    const look = async () =>
      Object.fromEntries((await run.status())!.nodes.map(({ name, state, unserved }) => [name, [state, unserved]]));
    expect(await look()).toEqual({
      plain: ["running", true],
      first: ["placing", true],
      second: ["pending", false],
      said: ["running", false],
    });
    const worker = await s.worker({ handlers: [keyed.handle(async () => 1)], pollIntervalMs: 20 });
    await until("the second to be over", async () => (await look())["second"]![0] === "succeeded");
    expect(await look()).toMatchObject({ plain: ["running", true], first: ["succeeded", false] });
    await worker.stop();
    const other = await s.worker({ handlers: [listener().handler], pollIntervalMs: 20 });
    await until("the plain one to be over", async () => (await look())["plain"]![0] === "succeeded");
    await other.stop();
  });
});

describe("run.items()", () => {
  /** All of them, page by page. */
  async function every(run: Run, node: string, search: object): Promise<RunItem[]> {
    const found: RunItem[] = [];
    let next: number | null = -1;
    while (next !== null) {
      const page = await run.items(node, { ...search, after: next });
      found.push(...page.items);
      next = page.after;
    }
    return found;
  }

  test.each(["finish", "collect"] as const)(
    "items returns every failed item with its error under %s",
    async (onError) => {
      const s = await workflowScene();
      const hands = await working(s);
      const run = await s.sluice.start(fanOut(10, onError), { items: numbers(10) });
      await hands.full(10);
      expect(await run.items("each", { limit: 1 })).toMatchObject({
        items: [{ index: 0, state: "running", error: null }],
        after: 0,
      });
      for (const i of [2, 5, 9]) hands.active.get(i)!.fail();
      hands.letGo();
      await failureOf(run);
      const error = (i: number) => ({ name: "Error", message: `no ${i}`, code: null });
      for (const limit of [1, 2, 100]) {
        const failed = await every(run, "each", { state: "failed", limit });
        expect(failed.map((item) => [item.index, item.error])).toEqual([2, 5, 9].map((i) => [i, error(i)]));
      }
      const all = await every(run, "each", { limit: 3 });
      expect(all.map(({ index }) => index)).toEqual(numbers(10));
      expect(await s.sluice.task(all[2]!.task).status()).toMatchObject({ state: "failed" });
      expect(await run.items("each", { state: "cancelled" })).toEqual({ items: [], after: null });
    },
  );

  test("items refuses a node that is not an each, an unknown node and an unknown run", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(fanOut(3), { items: [] });
    expect(await run.items("each")).toEqual({ items: [], after: null });
    expect(await codeOf(() => run.items("none"))).toBe("unknown_node");
    expect(await codeOf(() => run.items("last"))).toBe("invalid_option");
    expect(await codeOf(() => s.sluice.run("424242").items("each"))).toBe("run_not_found");
    for (const bad of [{ limit: 0 }, { limit: 1_001 }, { after: -2 }, { state: "x" }, { from: 1 }])
      expect(await codeOf(() => run.items("each", bad as never))).toBe("invalid_option");
    await run.cancel();
  });

  test("items of a handler's map are found by its task", async () => {
    const s = await workflowScene();
    const parent = task("parent", { retry: { attempts: 1 } });
    const hands = new Hands();
    await s.worker({
      handlers: [
        hands.handler,
        parent.handle(async (_, ctx) => {
          const inputs = numbers(3).map((item) => ({ item }));
          return ctx.map("pages", inputs, work, { window: 3, onError: "finish" });
        }),
      ],
      pollIntervalMs: 20,
    });
    const handle = await s.sluice.enqueue(parent);
    await hands.full(3);
    hands.active.get(1)!.fail();
    hands.letGo();
    expect(await codeOf(() => handle.result(PATIENCE))).toBe("task_failed");
    const { runs } = await s.sluice.runs({ task: handle.id });
    expect(runs).toMatchObject([{ workflow: "pages", state: "failed" }]);
    expect(await s.sluice.run(runs[0]!.id).items("pages", { state: "failed" })).toMatchObject({
      items: [{ index: 1, error: { message: "no 1" } }],
      after: null,
    });
    expect(await s.sluice.runs({ task: "424242" })).toEqual({ runs: [], cursor: null });
    expect(await s.sluice.runs()).toEqual({ runs: [], cursor: null });
    for (const bad of [{ task: "x" }, { task: "1", workflow: "pages" }])
      expect(await codeOf(() => s.sluice.runs(bad))).toBe("invalid_option");
  });
});

test("a map whose item was cancelled by a user reports that item, and reports it first", async () => {
  const s = await workflowScene();
  const parent = task("parent", { retry: { attempts: 1 } });
  const hands = new Hands();
  const told = signal<SluiceError>();
  await s.worker({
    handlers: [
      hands.handler,
      parent.handle(async (_, ctx) => {
        const inputs = numbers(30).map((item) => ({ item }));
        try {
          return await ctx.map("pages", inputs, work, { window: 30 });
        } catch (e) {
          if (isSluiceError(e)) told.resolve(e);
          throw e;
        }
      }),
    ],
    maxConcurrentTasks: 40,
    pollIntervalMs: 20,
    leaseMs: 6_000,
  });
  const handle = await s.sluice.enqueue(parent);
  await hands.full(30);
  const [map] = (await s.sluice.runs({ task: handle.id })).runs;
  const { items } = await s.sluice.run(map!.id).items("pages", { after: 24, limit: 1 });
  await s.sluice.task(items[0]!.task).cancel({ reason: "by hand" });
  const { code, message, details } = await told.promise;
  expect(code).toBe("task_cancelled");
  expect(message).toMatch(/30 were cancelled; item 25 cancelled: by hand$/);
  const { errors } = details as { errors: MapError[] };
  expect(errors.slice(0, 3).map(({ index }) => index)).toEqual([25, 0, 1]);
  await handle.result(PATIENCE).catch(() => undefined);
});

describe("a start by name", () => {
  const version = (node: string) =>
    workflow("flow", {}, (w) => {
      w.task(node, after, {});
    });
  const started = async (s: Scene): Promise<string> => {
    const graph = await (await s.sluice.start("flow")).graph();
    return graph!.nodes[0]!.name;
  };

  test("a start by name after a rollback of the code uses the graph declared last, not the one stored last", async () => {
    const s = await workflowScene();
    const other = await another(s);
    await s.sluice.start(version("one"));
    await other.start(version("two"));
    expect(await started(s)).toBe("two");
    // As a process that restarts with the older code.
    const again = await another(s);
    await again.start(version("one"));
    expect(await started(s)).toBe("one");
    expect((await s.sluice.workflowGraph("flow"))!.nodes[0]!.name).toBe("one");
    const graphs = "select id, declared::int from sluice.workflow_graph order by id";
    const rows = await rowsOf(s, graphs);
    await again.start(version("one"));
    await (await another(s)).start(version("one"));
    // The latest graph is not written again.
    expect(await rowsOf(s, graphs)).toEqual(rows);
  });

  test("a start by name uses the graph that sync declared, as a workflow or as data, in any order of the list", async () => {
    const s = await workflowScene();
    const { handler } = listener();
    await s.worker({ handlers: [handler] });
    await s.sluice.sync([version("one")]);
    expect(await started(s)).toBe("one");
    const { graph } = version("two");
    await s.sluice.sync([JSON.parse(JSON.stringify(graph)), after]);
    expect(await started(s)).toBe("two");
    await s.sluice.sync([version("one")]);
    expect(await started(s)).toBe("one");
  });

  test("a graph with unknown types is refused by sync, and cannot be started", async () => {
    const s = await workflowScene();
    const { graph } = version("one");
    await expect(s.sluice.sync([graph])).rejects.toMatchObject({
      code: "unknown_task",
      message: expect.stringContaining("'after'") as string,
    });
    const node = { name: "n", kind: "task", type: "after", input: {}, after: ["none"] };
    const broken = { version: 1, name: "flow", nodes: [node] };
    expect(await codeOf(() => s.sluice.sync([broken as never]))).toBe("invalid_workflow");
    expect(await codeOf(() => s.sluice.sync("flow" as never))).toBe("invalid_option");
    expect(await codeOf(() => s.sluice.start("flow"))).toBe("unknown_workflow");
    await s.sluice.sync([graph, after]);
    expect(await started(s)).toBe("one");
  });
});
