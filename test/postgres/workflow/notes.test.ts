import { afterEach, expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import { Play, ref, type Nodes } from "./play.js";
import { keyTwiceInOneCall } from "./standing.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> => void (play = await Play.open({ a: {}, b: {}, item: {} }));
const chain: Nodes = { one: ["task", { type: "a" }], two: ["task", { type: "b", after: ["one"] }] };

test("a completion in a user's transaction advances its run after the commit", async () => {
  await open();
  const run = await play.run(chain);
  const [task] = await play.claim();
  const [user] = await play.scene.sessions(1);
  await user.begin();
  await user.settleInTransaction(play.worker, task!);
  // The run is not locked meanwhile.
  expect(
    await play.db.value("select count(*)::int from (select from sluice.workflow_run for update skip locked) x"),
  ).toBe(1);
  await play.keeper();
  expect(await play.nodes(run)).toEqual({ one: "running", two: "pending" });
  await user.commit();
  play.hand = [];
  expect((await play.claim()).map((t) => t.type)).toEqual(["b"]);
  await play.drain();
  expect(await play.state(run)).toBe("succeeded");
});

test("a completion that rolls back leaves no note and advances nothing", async () => {
  await open();
  const run = await play.run(chain);
  const [task] = await play.claim();
  const [user] = await play.scene.sessions(1);
  await user.begin();
  await user.settleInTransaction(play.worker, task!);
  await user.rollback();
  await play.keeper();
  expect(await play.nodes(run)).toEqual({ one: "running", two: "pending" });
  await play.drain();
});

test("a cancel of single items in a user's transaction is counted after its commit", async () => {
  await open();
  const run = await play.run({
    each: ["each", { type: "item", items: [0, 1, 2, 3, 4], input: ref("item"), window: 2, onError: "collect" }],
    two: ["task", { type: "b", after: ["each"], input: ref("each", "counts") }],
  });
  const ids = (await play.members(run)).map((m) => m.id);
  const [user] = await play.scene.sessions(1);
  await user.begin();
  expect(await user.cancel(ids.slice(1, 4))).toEqual(["cancelled", "cancelled", "cancelled"]);
  await play.keeper();
  expect(await play.counts(run, "each")).toMatchObject({ cancelled: 0 });
  await user.commit();
  await play.drain();
  expect(play.started.at(-1)!.input).toEqual({ total: 5, succeeded: 2, failed: 0, cancelled: 3 });
});

test("a step processes notes together with the tasks it settles, in one pass", async () => {
  await open();
  await play.start(await play.declare(chain), 1, 2, 3);
  const [one, two, three] = await play.claim();
  await play.db.begin();
  await play.db.settleInTransaction(play.worker, three!);
  await play.db.commit();
  const next = await play.step(9, [
    [one!, 1],
    [two!, 2],
  ]);
  expect(next.map((t) => t.type)).toEqual(["b", "b", "b"]);
  play.hand = play.hand.filter((h) => h.id !== three!.id);
  await play.drain();
});

test("tasks of a dead worker come back, and a poisoned one fails its node", async () => {
  await open();
  const run = await play.run({
    each: ["each", { type: "item", items: [0, 1, 2], input: ref("item"), window: 2, onError: "finish" }],
  });
  for (let crash = 1; crash <= 3; crash++) {
    const worker = await play.db.register(play.worker.streams);
    const held = await play.db.claim(worker, 2);
    expect(held.length).toBe(2);
    await play.db.rows("update sluice.worker set expires_at = sluice.clock() - interval '1 s' where id = $1", [
      worker.id,
    ]);
    await play.db.reap();
    expect(await play.counts(run, "each")).toMatchObject({ failed: 0 });
  }
  // Both are suspects now: a worker that holds nothing else dies with the first.
  const worker = await play.db.register(play.worker.streams);
  const id = await play.db.value<string>("select suspect from sluice.beat($1, 1, 0, false)", [worker.id]);
  await play.db.rows("select from sluice.claim_suspect($1, 7, $2)", [worker.id, id]);
  await play.db.rows("update sluice.worker set expires_at = sluice.clock() - interval '1 s' where id = $1", [
    worker.id,
  ]);
  await play.db.reap();
  expect(await play.counts(run, "each")).toMatchObject({ failed: 1 });
  await play.drain();
  expect(await play.counts(run, "each")).toMatchObject({ failed: 1, succeeded: 1 });
});

test("a task that is cancelled while it waits for its next attempt ends its node", async () => {
  await open();
  const run = await play.run(chain);
  const [task] = await play.claim();
  const [user] = await play.scene.sessions(1);
  await user.begin();
  await user.cancel([task!.id]);
  await play.settle(task!, "retry");
  await user.commit();
  await play.drain();
  expect(await play.nodes(run)).toEqual({ one: "cancelled", two: "skipped" });
});

test("a start that rolls back leaves nothing, and one that commits runs", async () => {
  await open();
  const graph = await play.declare(chain);
  const [user] = await play.scene.sessions(1);
  for (const end of ["rollback", "commit"] as const) {
    await user.begin();
    await user.value("select ids[1] from sluice.workflow_start($1, 'null')", [graph]);
    await play.drain();
    expect(play.started).toEqual([]);
    await user[end]();
  }
  await play.drain();
  expect(play.started.map((t) => t.type)).toEqual(["a", "b"]);
});

test("an idempotency key starts one run, and is refused with another input", async () => {
  await open();
  const graph = await play.declare(chain);
  const start = (input: string): Promise<unknown> =>
    play.db.value("select sluice.workflow_start($1, $2, 'once')::text", [graph, input]);
  expect(await start("1")).toBe("({1},{f})");
  expect(await start("1")).toBe("({1},{t})");
  await expect(start("2")).rejects.toMatchObject({
    constraint: "idempotency_conflict",
    message: "idempotency key 'once' of workflow 'flow' was already used with another input, by run 1",
  });
  await play.drain();
  expect(play.started.length).toBe(2);
});

test("an idempotency key used twice in one call starts one run", async () => {
  await open();
  expect(await observe(keyTwiceInOneCall)).toEqual(wanted(keyTwiceInOneCall));
});
