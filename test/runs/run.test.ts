import { describe, expect, test } from "vitest";
import { z } from "zod";
import { task, type, workflow, type RunStatus } from "../../src/index.js";
import { waitForRun, watchRun } from "../../src/runs/wait.js";
import { codeOf } from "../client/house.js";
import { ended, signal, until } from "../flow/scene.js";
import { after, fanOut, Hands, listener, numbers, rowsOf, sorted, work, workflowScene } from "./scene.js";

const PATIENCE = { timeoutMs: 30_000 };
const one = workflow("one", { input: z.object({ n: z.number().default(7) }) }, (w, input) =>
  w.task("only", after, { n: input.n }),
);
const runsIn = "select count(*)::int as n from sluice.workflow_run";

describe("sluice.start()", () => {
  test("start validates the input and stores the output of the schema", async () => {
    const s = await workflowScene();
    const { heard, handler } = listener();
    await s.worker({ handlers: [handler] });
    expect(await codeOf(() => s.sluice.start(one, { n: "x" } as never))).toBe("input_invalid");
    expect(await codeOf(() => s.sluice.start(one, {}, { key: "x" } as never))).toBe("invalid_option");
    expect(await codeOf(() => s.sluice.start({} as never))).toBe("unknown_workflow");
    expect(await rowsOf(s, runsIn)).toEqual([{ n: 0 }]);
    const run = await s.sluice.start(one, {});
    expect(await run.result(PATIENCE)).toEqual({ n: 7 });
    expect([run.existed, heard]).toEqual([false, [{ n: 7 }]]);
  });

  test("start with a used idempotency key returns the existing run", async () => {
    const s = await workflowScene();
    const [first, again] = [
      await s.sluice.start(one, { n: 1 }, { idempotencyKey: "k" }),
      await s.sluice.start(one, { n: 1 }, { idempotencyKey: "k" }),
    ];
    expect([again.id, first.existed, again.existed]).toEqual([first.id, false, true]);
    await expect(s.sluice.start(one, { n: 2 }, { idempotencyKey: "k" })).rejects.toMatchObject({
      code: "idempotency_conflict",
      details: { id: first.id },
    });
    expect(await rowsOf(s, runsIn)).toEqual([{ n: 1 }]);
    expect(await s.sluice.counts()).toMatchObject({ ready: 1 });
  });

  test("start in a transaction creates a run if and only if the transaction commits", async () => {
    const s = await workflowScene();
    const { heard, handler } = listener();
    await s.worker({ handlers: [handler], pollIntervalMs: 20 });
    const client = await s.sql.connect();
    await client.query("begin");
    const lost = await s.sluice.start(one, { n: 1 }, { tx: client });
    expect(await lost.status()).toBeNull();
    await client.query("rollback");
    expect(await codeOf(() => lost.result())).toBe("run_not_found");
    await client.query("begin");
    const kept = await s.sluice.start(one, { n: 2 }, { tx: client });
    await client.query("commit");
    client.release();
    expect(await kept.result(PATIENCE)).toEqual({ n: 2 });
    expect(heard).toEqual([{ n: 2 }]);
    expect(await s.sluice.counts()).toMatchObject({ succeeded: 1, ready: 0 });
  });

  test("start by name uses the graph declared last, and a run keeps its own graph", async () => {
    const s = await workflowScene();
    expect(await codeOf(() => s.sluice.start("one", {}))).toBe("unknown_workflow");
    const old = await s.sluice.start(one, { n: 1 });
    const renamed = workflow("one", { input: type<{ n: number }>() }, (w, input) => {
      w.task("renamed", after, { was: input.n });
    });
    await s.sluice.start(renamed, { n: 2 });
    const named = await s.sluice.start("one", { n: 3 }, { idempotencyKey: "k" });
    expect((await named.graph())!.nodes.map((node) => node.name)).toEqual(["renamed"]);
    expect((await old.graph())!.nodes.map((node) => node.name)).toEqual(["only"]);
    expect(await s.sluice.workflowGraph("one")).toEqual(renamed.graph);
    expect(await s.sluice.workflowGraph("none")).toBeNull();
    const two = workflow("another", {}, (w) => {
      w.task("first", after, null);
      w.sleep("nap", 1_000);
    });
    await s.sluice.sync([two]);
    // Runs of both graphs of a name.
    const createdAt = expect.any(Date) as Date;
    expect(await s.sluice.workflows()).toEqual([
      { name: "another", nodes: 2, createdAt, live: 0 },
      { name: "one", nodes: 1, createdAt, live: 3 },
    ]);
    const { handler } = listener();
    await s.worker({ handlers: [handler] });
    expect(await old.result(PATIENCE)).toEqual({ n: 1 });
    expect(await named.result(PATIENCE)).toEqual({ renamed: { was: 3 } });
  });

  test("start declares the graph again after the tables were truncated", async () => {
    const s = await workflowScene();
    await s.sluice.start(one, {});
    await s.sql.query(
      "truncate sluice.workflow_graph, sluice.workflow_step, sluice.workflow_run, sluice.workflow_node, sluice.workflow_task, sluice.task, sluice.ready",
    );
    const { handler } = listener();
    await s.worker({ handlers: [handler] });
    expect(await (await s.sluice.start(one, {})).result(PATIENCE)).toEqual({ n: 7 });
  });
});

describe("run.result()", () => {
  test("result waits until its timeout or its signal", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(one, {});
    expect(await codeOf(() => run.result({ timeoutMs: 60 }))).toBe("wait_timeout");
    const giveUp = new AbortController();
    const waiting = run.result({ signal: giveUp.signal });
    giveUp.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(await codeOf(() => run.result({ timeoutMs: 0 }))).toBe("invalid_option");
    expect(await codeOf(() => run.result({ signal: {} as never }))).toBe("invalid_option");
    expect(await codeOf(() => s.sluice.run("424242").result())).toBe("run_not_found");
    expect(await codeOf(() => s.sluice.run("x"))).toBe("run_not_found");
  });

  test("result is notified by the database when the run ends", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(one, {});
    const heard = signal<string | undefined>();
    const client = await s.sql.connect();
    client.on("notification", ({ payload }) => {
      if (payload?.startsWith("done:") === true) heard.resolve(payload);
    });
    await client.query("listen sluice");
    const waiting = run.result(PATIENCE);
    await until("it to be announced", async () => {
      const rows = await rowsOf(s, "select from sluice.awaited where id = -$1::bigint", [run.id]);
      return rows.length > 0;
    });
    const { handler } = listener();
    await s.worker({ handlers: [handler] });
    expect(await heard.promise).toBe(`done:-${run.id}`);
    await waiting;
    client.release(true);
  });

  test("a wait ends with a notification, also with one that came between two waits", async () => {
    let tell: (payload: string) => void = () => {};
    const onPayload = (awaited: string, hear: () => void): (() => void) => {
      tell = (payload) => payload === awaited && hear();
      return () => {};
    };
    const listener = { onPayload, need: () => () => {} } as never;
    const wait = waitForRun({ db: null as never, listener }, "7", { timeoutMs: null, signal: null });
    const FOR_EVER_MS = 2_000_000_000;
    const first = wait.pause(FOR_EVER_MS);
    tell("done:7");
    tell("done:-7");
    await first;
    tell("done:-7");
    await wait.pause(FOR_EVER_MS);
    wait.close();
  });

  test("result of a retried run is the result of the retry", async () => {
    const s = await workflowScene();
    const hands = new Hands();
    const { heard, handler } = listener();
    await s.worker({ handlers: [hands.handler, handler], maxConcurrentTasks: 9 });
    const run = await s.sluice.start(fanOut(9, "finish"), { items: numbers(4) });
    await hands.full(4);
    hands.active.get(2)!.fail();
    hands.letGo();
    expect(await codeOf(() => run.result(PATIENCE))).toBe("workflow_failed");
    expect(await run.retry()).toBe(1);
    expect(await run.result(PATIENCE)).toMatchObject({ counts: { succeeded: 4, failed: 0 } });
    // Only the item that failed ran again.
    expect(sorted(hands.began)).toEqual([0, 1, 2, 2, 3]);
    expect(heard).toHaveLength(1);
    expect(await run.retry()).toBe(0);
  });
});

describe("run.watch()", () => {
  test("watch yields every observed status once, and ends with the run", async () => {
    const s = await workflowScene();
    const hands = new Hands();
    const { handler } = listener();
    await s.worker({ handlers: [hands.handler, handler], maxConcurrentTasks: 9 });
    const run = await s.sluice.start(fanOut(2), { items: numbers(5) });
    await hands.full(2);
    const seen: RunStatus[] = [];
    for await (const status of run.watch()) {
      seen.push(status);
      // A slow consumer misses intermediate states: the next status is the newest.
      if (seen.length === 1) {
        hands.letGo();
        await ended(s, 6);
      }
    }
    const [first, ...later] = seen;
    expect(first).toMatchObject({ state: "running", workflow: "fan-out", progress: 0 });
    expect(first!.nodes[0]).toMatchObject({
      name: "each",
      kind: "each",
      type: "work",
      state: "running",
      started: 2,
      waiting: 3,
      window: 2,
      counts: { total: 5, succeeded: 0 },
    });
    expect(later).toHaveLength(1);
    expect(later[0]).toMatchObject({ state: "succeeded", progress: 1 });
    expect(later[0]!.nodes[0]).toMatchObject({ started: 0, waiting: 0, counts: { succeeded: 5 } });
    const texts = seen.map((status) => JSON.stringify(status));
    expect(new Set(texts).size).toBe(texts.length);
  });

  test("watch yields the status of a finished run once, refuses an unknown run, and ends with its signal", async () => {
    const s = await workflowScene();
    const { handler } = listener();
    const run = await s.sluice.start(one, {});
    const giveUp = new AbortController();
    const watching = (async () => {
      for await (const { state } of run.watch({ signal: giveUp.signal }))
        if (state === "running") giveUp.abort(new Error("seen enough"));
    })();
    await expect(watching).rejects.toThrow("seen enough");
    await s.worker({ handlers: [handler] });
    await run.result(PATIENCE);
    const states: string[] = [];
    for await (const { state } of run.watch()) states.push(state);
    expect(states).toEqual(["succeeded"]);
    expect(await codeOf(() => s.sluice.run("424242").watch().next())).toBe("run_not_found");
  });

  test("watch yields nothing while nothing changes", async () => {
    let looks = 0;
    const row = { id: "7", name: "w", open: 0, created_at: new Date(0), finished_at: null };
    const rows = new Map<string, () => object[]>([
      ["workflow_run", () => [{ ...row, state: ++looks < 4 ? "running" : "succeeded" }]],
      ["workflow_nodes", () => []],
      ["await", () => []],
    ]);
    const db = { run: async ({ name }: { name: string }) => rows.get(name)!() };
    const seen: string[] = [];
    const services = { db: db as never, listener: null };
    for await (const { state } of watchRun(services, "7", null)) seen.push(`${state} at ${looks}`);
    expect(seen).toEqual(["running at 1", "succeeded at 4"]);
  });

  test("watch ends with the code closed when the client closes", async () => {
    const s = await workflowScene();
    const { Client } = await import("../../src/client.js");
    const client = await Client.connect({ url: s.url, migrate: false });
    const watching = client.run((await s.sluice.start(one, {})).id).watch();
    await watching.next();
    await client.close();
    expect(await codeOf(() => watching.next())).toBe("closed");
  });
});

describe("sluice.runs()", () => {
  test("runs are listed by workflow, state and time, page by page, newest first", async () => {
    const s = await workflowScene();
    const ids: string[] = [];
    for (const n of [1, 2, 3, 4, 5]) ids.unshift((await s.sluice.start(one, { n })).id);
    const other = await s.sluice.start(fanOut(1), { items: [] });
    await s.sluice.run(ids[1]!).cancel("not needed");
    const first = await s.sluice.runs({ workflow: "one", limit: 2 });
    const second = await s.sluice.runs({ workflow: "one", limit: 2, cursor: first.cursor! });
    const third = await s.sluice.runs({ workflow: "one", limit: 2, cursor: second.cursor! });
    expect([first, second, third].map(({ runs }) => runs.map(({ id }) => id))).toEqual([
      ids.slice(0, 2),
      ids.slice(2, 4),
      ids.slice(4),
    ]);
    expect(third.cursor).toBeNull();
    expect((await s.sluice.runs({ state: "cancelled" })).runs).toMatchObject([
      { id: ids[1], workflow: "one", state: "cancelled", reason: "not needed" },
    ]);
    const { createdAt } = (await other.status())!;
    expect((await s.sluice.runs({ since: createdAt })).runs.map(({ id }) => id)).toEqual([other.id]);
    for (const wrong of [{ state: "x" }, { limit: 0 }, { cursor: "x" }, { since: 1 }, { all: 1 }])
      expect(await codeOf(() => s.sluice.runs(wrong as never))).toBe("invalid_option");
  });
});

test("an undeclared contract is declared together with the graph that calls it", async () => {
  const s = await workflowScene();
  const fresh = task("fresh", { output: type<string>() });
  const alone = workflow("alone", {}, (w) => w.task("fresh", fresh));
  await s.worker({ handlers: [fresh.handle(async () => "done"), work.handle(async () => 1)] });
  const result: string = await (await s.sluice.start(alone)).result(PATIENCE);
  expect(result).toBe("done");
});
