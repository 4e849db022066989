import { afterEach, expect, test } from "vitest";
import { Play, ref, type Nodes } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> => void (play = await Play.open({ a: {}, b: {}, item: {} }));
const rows = (): Promise<number[]> =>
  play.db.value(
    `select array[(select count(*) from sluice.task), (select count(*) from sluice.done), (select count(*) from sluice.workflow_task),
      (select count(*) from sluice.workflow_node), (select count(*) from sluice.workflow_run)]::int[]`,
  );
const prune = (succeeded: number, failed: number, max = 1_000): Promise<number> =>
  play.db.value("select sluice.workflow_prune($1, $2, $2, $3)", [succeeded, failed, max]);
const nodes: Nodes = {
  one: ["task", { type: "a" }],
  each: [
    "each",
    {
      type: "item",
      after: ["one"],
      items: ref("one"),
      input: ref("item"),
      window: 2,
      onError: "finish",
    },
  ],
  two: ["task", { type: "b", after: ["each"], input: [ref("one"), ref("each", "results")] }],
};
const ending = (t: { type: string; input: unknown }): { result: unknown } => ({
  result: t.type === "a" ? [1, 2, 3] : t.input,
});

test("with history off the results of a run are kept while it lives", async () => {
  await open();
  play.keep = false;
  const run = await play.run(nodes);
  await play.drain(ending);
  expect(play.started.at(-1)!.input).toEqual([
    [1, 2, 3],
    [1, 2, 3],
  ]);
  expect(await play.result(run)).toEqual({
    two: [
      [1, 2, 3],
      [1, 2, 3],
    ],
  });
  // Others leave no trace meanwhile.
  await play.db.enqueue(play.streamOf("a"));
  await play.drain(ending);
  expect(await rows()).toEqual([5, 5, 5, 3, 1]);
});

test("what belongs to a run is pruned with it and not before", async () => {
  await open();
  await play.run(nodes);
  const [first] = await play.claim();
  await play.settle(first!, ending(first!));
  await play.scene.moveClock(3_600_000);
  play.worker = await play.db.register(play.worker.streams);
  const sweep = async (): Promise<void> => {
    await play.db.rows("delete from sluice.sweep");
    await play.db.rows("insert into sluice.sweep values (0, 0, '-infinity')");
    await play.db.rows("select sluice.prune_done(-1000, -1000, -1000)");
  };
  await sweep();
  expect(await prune(0, 0)).toBe(0);
  await play.drain(ending);
  await sweep();
  expect(await rows()).toEqual([5, 5, 5, 3, 1]);
  expect(await prune(3_600_000, 0)).toBe(0);
  // In pieces of two.
  await play.scene.moveClock(3_601_000);
  expect([await prune(0, 0, 2), await prune(0, 0, 2), await prune(0, 0, 2)]).toEqual([2, 2, 2]);
  expect(await rows()).toEqual([0, 0, 0, 0, 0]);
});

test("runs that failed are kept by their own time", async () => {
  await open();
  const [good, bad] = await play.start(await play.declare({ one: ["task", { type: "a" }] }), 1, 2);
  const [x, y] = await play.claim();
  await play.settle(x!, { result: 1 });
  await play.settle(y!, { fail: "x" });
  await play.scene.moveClock(10_000);
  await prune(5_000, 60_000);
  expect([await play.state(good!), await play.state(bad!)]).toEqual([undefined, "failed"]);
});

test("a failed item that blocks its order key is let go from its run and stays", async () => {
  await open();
  const run = await play.run({ one: ["task", { type: "a" }] });
  const [task] = await play.claim();
  await play.settle(task!, { fail: "x" });
  await play.db.rows(
    "insert into sluice.lane (id, limit_id, cap, used) values (1::bigint << 60 | 5, 0, 1, 1)",
  );
  await play.db.rows("insert into sluice.block (id, lane) values ($1, 1::bigint << 60 | 5)", [
    task!.id,
  ]);
  await play.scene.moveClock(10_000);
  await prune(0, 0);
  expect(await play.state(run)).toBeUndefined();
  expect(await play.scene.state(task!.id)).toBe("failed");
});
