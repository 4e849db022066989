import { afterEach, expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import { retriedWhilePruned } from "./again.js";
import { map, sleep } from "./maps.js";
import { Play, ref, type Nodes } from "./play.js";
import { prunedNodes } from "./standing.js";

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
  play.db.value("select pruned from sluice.workflow_prune($1, $2, $2, $3)", [succeeded, failed, max]);
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

test("results of a run are kept while it is live, even without history", async () => {
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

test("the tasks of a run are pruned with it and not before", async () => {
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

test("a run that is partly pruned does not exist for any caller", async () => {
  await open();
  expect(await observe(retriedWhilePruned)).toEqual(wanted(retriedWhilePruned));
});

test("a map is kept as long as its task may need it", async () => {
  await open();
  await play.db.enqueue(play.streamOf("a"));
  const [parent] = await play.claim();
  const { run } = await map(play, parent!, "pages", 2);
  await play.drain((t) => (t.type === "item" ? { result: 1 } : "keep"));
  await play.scene.moveClock(10_000);
  expect([await prune(0, 0), await play.state(Number(run))]).toEqual([0, "succeeded"]);
  await play.settle(parent!, { fail: "x" });
  expect([await prune(0, 0), await play.state(Number(run))]).toEqual([0, "succeeded"]);
  await play.db.rows("select sluice.retry($1)", [parent!.id]);
  await play.drain();
  expect([await prune(0, 0), await play.state(Number(run))]).toEqual([3, undefined]);
});

test("keeper searches for orphans, old maps and maps to bring back cost the same however many runs there are", async () => {
  await open();
  const fetched = (): Promise<number> =>
    play.db.value(
      "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int from pg_stat_xact_user_tables where schemaname = 'sluice'",
    );
  /** Rows read beside this many live maps, and as many ended ones whose tasks failed. */
  const cost = async (maps: number): Promise<number> => {
    await play.db.begin();
    await play.db.rows(
      "insert into sluice.task (id, stream, rank, attempts_max, gate, input) select n, 1, 0, 1, 0, 'null' from generate_series(1, 2 * $1) n",
      [maps],
    );
    await play.db.rows(
      "insert into sluice.done (id, state, attempt, finished_at) select n, 'failed', 1, sluice.clock() from generate_series(1, $1) n",
      [maps],
    );
    await play.db.rows(
      `insert into sluice.workflow_run (id, open, input, bytes_max, parent, name, state, finished_at)
        select n, 0, 'null', 1, n, 'm', case when n <= $1 then 'succeeded' else 'running' end::sluice.state, case when n <= $1 then sluice.clock() - interval '1 day' end from generate_series(1, 2 * $1) n`,
      [maps],
    );
    // Tasks of as many paused ones are to run again.
    await play.db.rows(
      "insert into sluice.workflow_again (run, node, failed, cancelled) select n, 1, 1, 0 from generate_series($1 + 1, 2 * $1) n",
      [maps],
    );
    await play.db.rows("update sluice.workflow_run set paused = true where id > $1", [maps]);
    await play.db.rows("select sluice.workflow_activate()");
    const before = await fetched();
    await play.db.rows("select sluice.workflow_keep(1000)");
    await play.db.rows("select sluice.workflow_orphans(100)");
    expect(await prune(0, 0)).toBe(0);
    const after = await fetched();
    await play.db.rollback();
    return after - before;
  };
  expect(await cost(20_000)).toBeLessThan(2 * (await cost(1_000)));
});

/** Fan-outs of tasks that live, one with a very old id and the others close together, as $1 and $1 + 1,000,000. */
const cluster = async (n: number): Promise<number> => {
  const ids = "select case when k = 0 then 1 else 1000000 + k end as id from generate_series(0, $1::int) k";
  await play.db.rows(
    `insert into sluice.task (id, stream, rank, attempts_max, gate, input) select id, 1, 0, 1, 0, 'null' from (${ids}) x`,
    [n],
  );
  await play.db.rows(
    `insert into sluice.workflow_run (id, open, input, bytes_max, parent, name) select id, 0, 'null', 1, id, 'm' from (${ids}) x`,
    [n],
  );
  return 1_000_000 + n;
};

test("every map and every parent is checked within a round, whatever their ids", async () => {
  await open();
  await play.db.begin();
  const last = await cluster(3_000);
  await play.db.rows(
    "insert into sluice.parent (id, attempt, held, runs) select id, 1, 0, array[id] from sluice.workflow_run",
  );
  // Of all those only the last has lost its task, and only the last but one waits for what is over.
  await play.db.rows(
    "insert into sluice.done (id, state, attempt, finished_at) values ($1, 'failed', 1, sluice.clock())",
    [last],
  );
  await play.db.rows("update sluice.workflow_run set finished_at = sluice.clock(), state = 'succeeded' where id = $1", [
    last - 1,
  ]);
  let [cancelled, at] = [0, { after: "0", after_parent: "0" }];
  for (let turn = 0; turn < 16; turn++) {
    const [row] = await play.db.rows<{ cancelled: number } & typeof at>(
      "select cancelled, after, after_parent from sluice.workflow_orphans(100, $1, $2)",
      [at.after, at.after_parent],
    );
    cancelled += row!.cancelled;
    at = row!;
  }
  expect([cancelled, await play.state(last)]).toEqual([1, "cancelling"]);
  const sleeps = "select exists (select from sluice.parent where id = $1)";
  expect(await play.db.value(sleeps, [last - 1])).toBe(false);
  expect(await play.db.value(sleeps, [last - 2])).toBe(true);
  await play.db.rollback();
});

test("a small map behind many that are kept is pruned within a round, and so is an empty one", async () => {
  await open();
  await play.db.begin();
  const last = await cluster(3_000);
  await play.db.rows(
    "update sluice.workflow_run set finished_at = sluice.clock() - interval '1 day', state = 'succeeded'",
  );
  await play.db.rows("delete from sluice.task where id > $1", [last - 2]);
  let [pruned, after] = [0, "0"];
  for (let turn = 0; turn < 7; turn++) {
    const [row] = await play.db.rows<{ pruned: number; after: string }>(
      "select pruned, after from sluice.workflow_prune(0, 0, 0, 2000, $1)",
      [after],
    );
    pruned += row!.pruned;
    after = row!.after;
  }
  expect([pruned, await play.state(last)]).toEqual([2, undefined]);
  await play.db.rollback();
});

test("maps of a retried run come back many at a time, beside many that cannot", async () => {
  await open();
  const many = 150;
  const items = Array.from({ length: many }, (_, i) => i);
  const run = await play.run({ all: ["each", { type: "a", items, onError: "finish" }] });
  const parents = await play.claim(many);
  for (const parent of parents) await sleep(play, parent, (await map(play, parent, "m", 1)).run);
  // The items fail, and then their parents.
  await play.drain(() => ({ fail: "x" }));
  await play.db.value("select sluice.workflow_retry($1)", [run]);
  const left = (): Promise<number> =>
    play.db.value(
      "select count(*)::int from sluice.workflow_again a join sluice.workflow_run r on r.id = a.run and not r.paused",
    );
  expect(await left()).toBe(many);
  // The first runs, more than one statement examines, are paused.
  const paused = await play.db.rows<{ id: string }>(
    "select id from sluice.workflow_run where parent is not null and finished_at is null order by id limit 120",
  );
  for (const { id } of paused) await play.db.value("select sluice.workflow_pause($1, true)", [id]);
  const looks: number[] = [];
  let after = "0";
  for (let turn = 0; turn < 2; turn++) {
    const [row] = await play.db.rows<{ moved: number; after: string }>(
      "select moved, after from sluice.workflow_keep(1000, $1)",
      [after],
    );
    looks.push(row!.moved);
    after = row!.after;
  }
  // Nothing of the first hundred; then all the others, and at once again, for the walk began behind those.
  expect([looks, await left()]).toEqual([[0, 1_000], 0]);
  for (const { id } of paused) await play.db.value("select sluice.workflow_pause($1, false)", [id]);
  await play.drain();
  expect(await play.state(run)).toBe("succeeded");
});

test("failed runs are kept for their own time", async () => {
  await open();
  const [good, bad] = await play.start(await play.declare({ one: ["task", { type: "a" }] }), 1, 2);
  const [x, y] = await play.claim();
  await play.settle(x!, { result: 1 });
  await play.settle(y!, { fail: "x" });
  await play.scene.moveClock(10_000);
  await prune(5_000, 60_000);
  expect([await play.state(good!), await play.state(bad!)]).toEqual([undefined, "failed"]);
});

test("a failed item that blocks its order key is detached from its pruned run and stays", async () => {
  await open();
  const run = await play.run({ one: ["task", { type: "a" }] });
  const [task] = await play.claim();
  await play.settle(task!, { fail: "x" });
  await play.db.rows("insert into sluice.lane (id, limit_id, cap, used) values (1::bigint << 60 | 5, 0, 1, 1)");
  await play.db.rows("insert into sluice.block (id, lane) values ($1, 1::bigint << 60 | 5)", [task!.id]);
  await play.scene.moveClock(10_000);
  await prune(0, 0);
  expect(await play.state(run)).toBeUndefined();
  expect(await play.scene.state(task!.id)).toBe("failed");
});

test("pruning deletes a bounded number of nodes per statement, in whole runs", async () => {
  await open();
  expect(await observe(prunedNodes)).toEqual(wanted(prunedNodes));
});
