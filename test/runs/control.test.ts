import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type, workflow, type Run } from "../../src/index.js";
import { codeOf } from "../client/house.js";
import { until, type Scene } from "../flow/scene.js";
import { after, fanOut, Hands, listener, numbers, work, workflowScene } from "./scene.js";

const PATIENCE = { timeoutMs: 30_000 };
const approval = workflow("approval", { input: type<{ timeoutMs: number }>() }, (w) => {
  const said = w.waitFor("approval", "approved", {
    timeoutMs: 600_000,
    schema: z.object({ by: z.string(), at: z.number().default(1) }),
  });
  return w.task("go", after, { by: said.by, at: said.at });
});
const slow = workflow("slow", {}, (w) => {
  const nap = w.sleep("nap", 600_000);
  w.task("go", after, null, { after: [nap] });
});
const statesOf = async (run: Run): Promise<Record<string, string>> =>
  Object.fromEntries((await run.status())!.nodes.map(({ name, state }) => [name, state]));

async function working(s: Scene, hands = new Hands()) {
  const last = listener();
  await s.worker({
    handlers: [hands.handler, last.handler],
    maxConcurrentTasks: 20,
    pollIntervalMs: 20,
    leaseMs: 6_000,
  });
  return { hands, ...last };
}

describe("run.cancel()", () => {
  async function expectCancelled(run: Run, reason: string): Promise<void> {
    await expect(run.result(PATIENCE)).rejects.toMatchObject({
      code: "workflow_cancelled",
      message: expect.stringContaining(reason) as string,
      details: { id: run.id, reason },
    });
    expect(await run.cancel()).toBe("over");
    expect((await run.status())!.reason).toBe(reason);
  }

  test("cancel of a run that has not started cancels all its tasks", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(fanOut(3), { items: numbers(5) });
    expect(await run.cancel("not needed")).toBe("cancelled");
    await expectCancelled(run, "not needed");
    expect(await s.sluice.counts()).toMatchObject({ cancelled: 5, ready: 0, waiting: 0 });
  });

  test("cancel of a running run aborts its running tasks and starts no others", async () => {
    const s = await workflowScene();
    const { hands, heard } = await working(s);
    const run = await s.sluice.start(fanOut(3), { items: numbers(5) });
    await hands.full(3);
    // The abort is immediate, and the items could end before the call returns.
    const abort = hands.holdAborts();
    expect(await run.cancel("enough")).toBe("asked");
    abort();
    await expectCancelled(run, "enough");
    expect([hands.began.length, hands.active.size, heard]).toEqual([3, 0, []]);
    expect(await statesOf(run)).toEqual({ each: "cancelled", last: "cancelled" });
  });

  test.each([
    ["waits for an event", approval, "running"],
    ["sleeps", slow, "running"],
  ] as const)("cancel of a run that %s ends it immediately", async (_, definition, state) => {
    const s = await workflowScene();
    const run = (await s.sluice.start(definition as typeof slow)) as Run;
    expect((await run.status())!.nodes[0]!.state).toBe(state);
    expect(await run.cancel("enough")).toBe("cancelled");
    await expectCancelled(run, "enough");
  });

  test("cancel ends a paused run, and returns unknown for a run that does not exist", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(fanOut(3), { items: numbers(5) });
    await run.pause();
    expect(await run.cancel("paused for good")).toBe("cancelled");
    await expectCancelled(run, "paused for good");
    expect(await s.sluice.run("424242").cancel()).toBe("unknown");
  });

  test("cancel of a succeeded run changes nothing", async () => {
    const s = await workflowScene();
    const { hands } = await working(s);
    hands.letGo();
    const run = await s.sluice.start(fanOut(3), { items: numbers(2) });
    await run.result(PATIENCE);
    expect(await run.cancel()).toBe("over");
    expect((await run.status())!.state).toBe("succeeded");
  });

  test("retry of a cancelled run runs the cancelled tasks", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(fanOut(3), { items: numbers(5) });
    await run.cancel();
    expect(await codeOf(() => run.result(PATIENCE))).toBe("workflow_cancelled");
    expect(await run.retry()).toBeGreaterThan(0);
    const { hands } = await working(s);
    hands.letGo();
    expect(await run.result(PATIENCE)).toMatchObject({ counts: { succeeded: 5 } });
  });
});

test("cancel of 2,500 items has cancelled all of them when it returns, and retry brings all of them back", async () => {
  const s = await workflowScene();
  const run = await s.sluice.start(fanOut(3), { items: numbers(2_500) });
  // No worker runs that would place the items.
  await s.sql.query("select sluice.workflow_place_many()");
  expect(await run.cancel("enough")).toBe("cancelled");
  expect(await s.sluice.counts()).toMatchObject({ waiting: 0, cancelled: 2_500 });
  expect(await run.retry()).toBe(2);
  expect(await s.sluice.counts()).toMatchObject({ waiting: 2_500, cancelled: 0 });
  expect(await run.cancel("enough")).toBe("cancelled");
});

describe("run.pause() and run.resume()", () => {
  test("retry of a paused run is refused until it is resumed", async () => {
    const s = await workflowScene();
    const { hands } = await working(s);
    const run = await s.sluice.start(fanOut(2, "finish"), { items: numbers(3) });
    await hands.full(2);
    await run.pause();
    expect(await codeOf(() => run.retry())).toBe("workflow_paused");
    await run.resume();
    hands.letGo();
    await run.result(PATIENCE);
    expect(await run.retry()).toBe(0);
  });

  test("pause lets running tasks finish and starts no others until the run is resumed", async () => {
    const s = await workflowScene();
    const { hands, heard } = await working(s);
    const run = await s.sluice.start(fanOut(2), { items: numbers(5) });
    await hands.full(2);
    expect(await run.pause()).toBe(true);
    hands.letGo();
    await until("those that ran to be over", async () => {
      const { state, nodes } = (await run.status())!;
      return state === "paused" && nodes[0]!.counts.succeeded === 2;
    });
    expect([hands.began.length, (await run.status())!.nodes[0]!.started]).toEqual([2, 0]);
    expect(await run.resume()).toBe(true);
    expect(await run.result(PATIENCE)).toMatchObject({ counts: { succeeded: 5 } });
    expect([hands.began.length, heard.length]).toEqual([5, 1]);
    expect([await run.pause(), await run.resume()]).toEqual([false, false]);
  });

  test("pause holds the nodes that would start next", async () => {
    const s = await workflowScene();
    const { hands, heard } = await working(s);
    const run = await s.sluice.start(fanOut(2), { items: [1] });
    await hands.full(1);
    await run.pause();
    hands.letGo();
    await until("it to be held", async () => (await statesOf(run))["last"] === "held");
    expect(heard).toEqual([]);
    await run.resume();
    await run.result(PATIENCE);
    expect(heard).toHaveLength(1);
  });
});

describe("events of a run", () => {
  test("an event sent before a node waits for it is delivered when the node starts to wait", async () => {
    const s = await workflowScene();
    const { hands } = await working(s);
    const late = workflow("late", {}, (w) => {
      const first = w.task("first", work, { item: 1 });
      const said = w.waitFor("said", "said", { after: [first], schema: type<string>() });
      return { said };
    });
    const run = await s.sluice.start(late);
    await hands.full(1);
    expect(await run.send("said", "early")).toBe(true);
    expect((await statesOf(run))["said"]).toBe("pending");
    hands.letGo();
    expect(await run.result(PATIENCE)).toEqual({ said: "early" });
  });

  test("an event is validated by its schema, gets its defaults, and is delivered once", async () => {
    const s = await workflowScene();
    const { heard } = await working(s);
    const run = await s.sluice.start(approval, { timeoutMs: 1 });
    expect(await codeOf(() => run.send("approved", { by: 7 }))).toBe("input_invalid");
    expect(await codeOf(() => run.send("aproved", { by: "me" }))).toBe("unknown_event");
    expect(await run.send("approved", { by: "me" })).toBe(true);
    await run.send("approved", { by: "another" });
    await run.result(PATIENCE);
    expect(heard).toEqual([{ by: "me", at: 1 }]);
    expect(await run.send("approved", { by: "late" })).toBe(false);
    expect(await s.sluice.run("424242").send("anything")).toBe(false);
    const again = s.sluice.run(run.id, approval);
    expect(await codeOf(() => again.send("approved", {}))).toBe("input_invalid");
    await expect(again.send("approved", {})).rejects.toThrow('the payload of event "approved" is not valid: by: ');
  });

  test("an event that the run does not wait for is refused, also without the definition at hand", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(approval, { timeoutMs: 60_000 });
    const elsewhere = s.sluice.run(run.id);
    expect(await codeOf(() => elsewhere.send("aproved", { by: "me" }))).toBe("unknown_event");
    await expect(elsewhere.send("aproved")).rejects.toThrow('its events are "approved"');
    expect(await elsewhere.send("approved", { by: "me" })).toBe(true);
  });

  test("a run handle with the definition of another workflow refuses events and results", async () => {
    const s = await workflowScene();
    const other = workflow("other", {}, (w) => w.waitFor("it", "approved"));
    const run = await s.sluice.start(approval, { timeoutMs: 60_000 });
    const taken = s.sluice.run(run.id, other);
    const refused = `run ${run.id} belongs to workflow "${approval.name}", not to workflow "other"`;
    await expect(taken.send("approved", {})).rejects.toMatchObject({
      code: "invalid_option",
      message: refused,
    });
    await run.cancel();
    await expect(taken.result(PATIENCE)).rejects.toMatchObject({
      code: "invalid_option",
      message: refused,
    });
  });

  test("an event sent in a transaction is delivered if and only if the transaction commits", async () => {
    const s = await workflowScene();
    const { heard } = await working(s);
    const run = await s.sluice.start(approval, { timeoutMs: 1 });
    const client = await s.sql.connect();
    for (const [by, end] of [
      ["nobody", "rollback"],
      ["me", "commit"],
    ]) {
      await client.query("begin");
      expect(await run.send("approved", { by }, { tx: client })).toBe(true);
      await client.query(end!);
    }
    client.release();
    await run.result(PATIENCE);
    expect(heard).toEqual([{ by: "me", at: 1 }]);
  });

  test("an event that does not arrive in time fails its node, and a branch may recover from it", async () => {
    const s = await workflowScene();
    const { heard } = await working(s);
    const impatient = (recover: boolean) =>
      workflow("impatient", {}, (w) => {
        const said = w.waitFor("said", "said", { timeoutMs: 50 });
        w.onFailure(said, (f, failure) => void f.task("sorry", after, { why: failure.message }), {
          recover,
        });
      });
    const failed = await s.sluice.start(impatient(false));
    await expect(failed.result(PATIENCE)).rejects.toMatchObject({
      code: "workflow_failed",
      details: { nodes: [{ node: "said", error: { code: "timeout" }, recovered: false }] },
    });
    const caught = await s.sluice.start(impatient(true));
    await caught.result(PATIENCE);
    expect(await statesOf(caught)).toEqual({ said: "failed", sorry: "succeeded" });
    expect(heard).toHaveLength(2);
    expect(heard[0]).toEqual({ why: "the event did not arrive in time" });
  });
});
