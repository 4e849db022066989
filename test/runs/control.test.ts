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

describe("cancel", () => {
  async function expectCancelled(run: Run, reason: string): Promise<void> {
    await expect(run.result(PATIENCE)).rejects.toMatchObject({
      code: "workflow_cancelled",
      message: expect.stringContaining(reason) as string,
      details: { id: run.id, reason },
    });
    expect(await run.cancel()).toBe("over");
    expect((await run.status())!.reason).toBe(reason);
  }

  test("of what nobody has begun", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(fanOut(3), { items: numbers(5) });
    expect(await run.cancel("not needed")).toBe("cancelled");
    await expectCancelled(run, "not needed");
    expect(await s.sluice.counts()).toMatchObject({ cancelled: 5, ready: 0, waiting: 0 });
  });

  test("of what runs: it hears of it, and nothing begins any more", async () => {
    const s = await workflowScene();
    const { hands, heard } = await working(s);
    const run = await s.sluice.start(fanOut(3), { items: numbers(5) });
    await hands.full(3);
    // They hear of it at once, and could be over before the call is.
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
  ] as const)("of what %s", async (_, definition, state) => {
    const s = await workflowScene();
    const run = (await s.sluice.start(definition as typeof slow)) as Run;
    expect((await run.status())!.nodes[0]!.state).toBe(state);
    expect(await run.cancel("enough")).toBe("cancelled");
    await expectCancelled(run, "enough");
  });

  test("of what is paused, and of what is there no more", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(fanOut(3), { items: numbers(5) });
    await run.pause();
    expect(await run.cancel("paused for good")).toBe("cancelled");
    await expectCancelled(run, "paused for good");
    expect(await s.sluice.run("424242").cancel()).toBe("unknown");
  });

  test("of what succeeded or failed changes nothing", async () => {
    const s = await workflowScene();
    const { hands } = await working(s);
    hands.letGo();
    const run = await s.sluice.start(fanOut(3), { items: numbers(2) });
    await run.result(PATIENCE);
    expect(await run.cancel()).toBe("over");
    expect((await run.status())!.state).toBe("succeeded");
  });

  test("is undone by a retry, which runs what was cancelled", async () => {
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

test("a cancel of many has looked at all of them when it returns, and a retry has all of them back", async () => {
  const s = await workflowScene();
  const run = await s.sluice.start(fanOut(3), { items: numbers(2_500) });
  // There is no worker that would do it.
  await s.sql.query("select sluice.workflow_place_many()");
  expect(await run.cancel("enough")).toBe("cancelled");
  expect(await s.sluice.counts()).toMatchObject({ waiting: 0, cancelled: 2_500 });
  expect(await run.retry()).toBe(2);
  expect(await s.sluice.counts()).toMatchObject({ waiting: 2_500, cancelled: 0 });
  expect(await run.cancel("enough")).toBe("cancelled");
});

describe("pause", () => {
  test("and retry: it is resumed first", async () => {
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

  test("lets what runs finish, begins nothing, and goes on when it is resumed", async () => {
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

  test("holds what would begin next", async () => {
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

describe("an event", () => {
  test("that came before anybody waited is taken when somebody does", async () => {
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

  test("is checked against its schema, which fills in what is missing, and is taken once", async () => {
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

  test("that the run does not wait for is refused, also where no definition is at hand", async () => {
    const s = await workflowScene();
    const run = await s.sluice.start(approval, { timeoutMs: 60_000 });
    const elsewhere = s.sluice.run(run.id);
    expect(await codeOf(() => elsewhere.send("aproved", { by: "me" }))).toBe("unknown_event");
    await expect(elsewhere.send("aproved")).rejects.toThrow('its events are "approved"');
    expect(await elsewhere.send("approved", { by: "me" })).toBe(true);
  });

  test("and the result of a run are refused to whoever has the definition of another workflow", async () => {
    const s = await workflowScene();
    const other = workflow("other", {}, (w) => w.waitFor("it", "approved"));
    const run = await s.sluice.start(approval, { timeoutMs: 60_000 });
    const taken = s.sluice.run(run.id, other);
    const refused = `run ${run.id} is of workflow "${approval.name}", not of workflow "other"`;
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

  test("in a transaction is sent if and only if that commits", async () => {
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

  test("that does not come in time fails its node, and a branch may catch that", async () => {
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
    expect(heard[0]).toEqual({ why: "the event did not come in time" });
  });
});
