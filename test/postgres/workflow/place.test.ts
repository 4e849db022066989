import { afterEach, describe, expect, test } from "vitest";
import { refusal, Scene, type Session } from "../../support/sql.js";
import { observe, wanted } from "../schedules/schedule.js";
import {
  cancelledAmongMany,
  diedPlacing,
  diedWithBatch,
  failedInHand,
  insertTasks,
  killedTenTimes,
  lastTryBesideResume,
  lockedInOrder,
  long,
  pausedUnplaced,
  itemsOfHeldKey,
  placedUnasked,
  placeSmallRows,
  placingPlay,
  putOffTenTimes,
  resumedBesideOne,
  resumedBesidePlacer,
  sayPlaced,
  staleBesideResume,
  standingStill,
  takeRow,
  takeSmallRows,
} from "./placing.js";
import { Play, ref, type Nodes } from "./play.js";

let play: Play;
// Schedules have scenes of their own.
const opened: Play[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) {
    expect(await one.violations()).toEqual([]);
    await one.close();
  }
});

async function openPlacing(): Promise<void> {
  opened.push((play = await placingPlay(await Scene.open())));
}

const RECORD = "\u001e";

/** A type that decides its limits in code, and one with a limit per key. */
async function open(): Promise<number> {
  opened.push((play = await Play.open({ a: {}, coded: {}, other: {} })));
  await play.db.rows("update sluice.contract set limit_ids = null, ordered = true where type = 'coded'");
  return play.db.limit("tenant", { perKey: 1 });
}

interface Taken {
  run: string | null;
  node: number;
  stream: number;
  total: number;
}

async function take(db: Session, types = ["coded"]): Promise<Taken | null> {
  const streams = types.map((t) => play.streamOf(t));
  const [row] = await db.rows<Taken>("select * from sluice.workflow_take($1)", [streams]);
  return row?.run == null ? null : row;
}

/** What a process does that knows the task: keys from inputs, all in one transaction, in pieces. */
async function place(db: Session, limit: number, piece = 2, before?: () => Promise<void>): Promise<boolean> {
  await db.begin();
  const taken = await take(db);
  if (taken === null) {
    await db.rollback();
    return false;
  }
  for (let from = 0; from < taken.total; from += piece) {
    const text = await db.value<string>("select sluice.workflow_inputs($1, $2, $3, $4)", [
      taken.run,
      taken.node,
      from,
      piece,
    ]);
    const inputs = JSON.parse(text) as { key: string }[];
    await db.value("select sluice.workflow_place($1, $2, $3, $4, 0, 25, $5, $6, $7, $8)", [
      taken.run,
      taken.node,
      from,
      taken.stream,
      inputs.map((x) => JSON.stringify(x)).join(RECORD),
      [limit],
      inputs.map((x) => x.key).join(RECORD),
      inputs.map((x) => x.key).join(RECORD),
    ]);
  }
  await before?.();
  const placed = await db.value<boolean>("select sluice.workflow_placed($1, $2)", [taken.run, taken.node]);
  await (placed ? db.commit() : db.rollback());
  return placed;
}

const nodes: Nodes = {
  first: ["task", { type: "a" }],
  one: ["task", { type: "coded", after: ["first"], input: { key: ref("first", "k") } }],
  many: [
    "each",
    {
      type: "coded",
      after: ["one"],
      items: ref("first", "list"),
      input: { key: ref("item"), n: ref("index") },
      window: 2,
      onError: "finish",
    },
  ],
  last: ["task", { type: "a", after: ["many"] }],
};
const ending = (t: { type: string }): { result: unknown } => ({
  result: t.type === "a" ? { k: "x", list: ["x", "x", "y", "z", "x"] } : 1,
});

test("a settle by a worker that does not know the next type leaves the node to be placed by one that does", async () => {
  const limit = await open();
  const run = await play.run(nodes);
  const all = play.worker;
  play.worker = await play.db.register([play.streamOf("a"), play.streamOf("other")]);
  await play.drain(ending);
  expect(await play.nodes(run)).toMatchObject({ first: "succeeded", one: "placing" });
  expect(await take(play.db, ["a", "other"])).toBeNull();
  play.worker = all;
  const [knows] = await play.scene.sessions(1);
  expect(await place(knows, limit)).toBe(true);
  await play.drain(ending);
  expect(await play.nodes(run)).toMatchObject({ one: "succeeded", many: "placing" });
  expect(await place(knows, limit)).toBe(true);
  await play.drain(ending);
  expect(await play.state(run)).toBe("succeeded");
  const many = play.started.filter((t) => t.type === "coded").slice(1);
  expect(many.map((t) => t.input)).toHaveLength(5);
  // Strictly in order within a key, at most two at once, and the rest passes those that wait for their key.
  expect(many.filter((t) => (t.input as { key: string }).key === "x").map((t) => (t.input as { n: number }).n)).toEqual(
    [0, 1, 4],
  );
  expect(play.peak.get("coded")).toBe(2);
});

test("a step notifies only a worker that serves the type of an unplaced node", async () => {
  await open();
  await play.run(nodes);
  const [first] = await play.claim();
  await play.settle(first!, ending(first!));
  const told = async (types: string[]): Promise<boolean> => {
    const streams = types.map((t) => play.streamOf(t));
    const worker = await play.db.register(streams);
    const text = "select count(*)::int from sluice.step($1, 16, $2, 0) where (report ->> 'unplaced')::boolean";
    return (await play.db.value<number>(text, [worker.id, streams])) === 1;
  };
  expect(await told(["a", "other"])).toBe(false);
  expect(await told(["coded"])).toBe(true);
});

test("one of two concurrent placers places a node", async () => {
  const limit = await open();
  await play.run({ one: ["task", { type: "coded", input: { key: "k" } }] });
  const [first, second] = await play.scene.sessions(2);
  await first.begin();
  expect(await take(first)).not.toBeNull();
  await second.begin();
  expect(await take(second)).toBeNull();
  await second.rollback();
  await first.rollback();
  expect(await place(second, limit)).toBe(true);
  await play.drain();
  expect(play.started.length).toBe(1);
});

test("a run that is cancelled while its tasks are placed gets none", async () => {
  const limit = await open();
  const run = await play.run({ one: ["task", { type: "coded", input: { key: "k" } }] });
  const [placer] = await play.scene.sessions(1);
  const placed = await place(placer, limit, 1, async () => {
    expect(await play.db.value("select sluice.workflow_cancel($1)", [run])).toBe("cancelled");
  });
  expect(placed).toBe(false);
  // The next placer removes the stale row.
  expect(await take(play.db)).toBeNull();
  await play.drain();
  expect(play.started).toEqual([]);
  expect(await play.state(run)).toBe("cancelled");
});

test("an invalid input fails its node", async () => {
  await open();
  const run = await play.run({
    one: ["task", { type: "coded" }],
    two: ["task", { type: "a", after: [{ node: "one", on: "failure" }] }],
  });
  const taken = await take(play.db);
  const error = { name: "SluiceError", code: "input_invalid", message: "no key" };
  expect(await play.db.value("select sluice.workflow_misplaced($1, $2, $3)", [run, taken!.node, error])).toBe(true);
  await play.drain();
  expect(await play.errorOf(run, "one")).toMatchObject({ code: "input_invalid" });
  expect(play.started.map((t) => t.type)).toEqual(["a"]);
});

test("a long list is placed in a transaction of its own, which blocks no other session", async () => {
  await open();
  const list = Array.from({ length: 1_500 }, (_, i) => i);
  const run = await play.run({
    many: ["each", { type: "a", items: list, input: ref("item"), window: 3 }],
    beside: ["task", { type: "other" }],
  });
  expect(await play.nodes(run)).toEqual({ many: "placing", beside: "running" });
  const [placer] = await play.scene.sessions(1);
  await placer.begin();
  await placer.rows("select from sluice.workflow_unplaced for update");
  expect(await play.db.value("select sluice.workflow_place_many()")).toBe(false);
  const [task] = await play.claim();
  await play.settle(task!, { result: 1 });
  expect(await play.nodes(run)).toEqual({ many: "placing", beside: "succeeded" });
  await placer.rollback();
  expect(await play.db.value("select sluice.workflow_place_many()")).toBe(true);
  expect((await play.claim()).map((t) => t.input)).toEqual([0, 1, 2]);
  await play.db.value("select sluice.workflow_cancel($1)", [run]);
  await play.drain();
  expect(await play.state(run)).toBe("cancelled");
});

describe("placing in a paused run", () => {
  test("nothing of a paused run is placed", async () => {
    expect(await observe(pausedUnplaced)).toEqual(wanted(pausedUnplaced));
  });

  test("a fan-out that is paused and resumed while it is placed keeps its window", async () => {
    expect(await observe(resumedBesidePlacer)).toEqual(wanted(resumedBesidePlacer));
  });

  test("a task whose placer gives up after a resume is placed by another", async () => {
    expect(await observe(resumedBesideOne)).toEqual(wanted(resumedBesideOne));
  });

  test("a resume beside the removal of stale rows loses nothing", async () => {
    expect(await observe(staleBesideResume)).toEqual(wanted(staleBesideResume));
  });

  test("a run that is paused while its tasks are placed gets none, and they are placed after its resume", async () => {
    await openPlacing();
    const run = await play.run({ one: ["task", { type: "coded", input: 1 }] });
    const [placer] = await play.scene.sessions(1);
    await placer.begin();
    const taken = await takeRow(play, placer);
    await insertTasks(placer, taken);
    await play.db.value("select sluice.workflow_pause($1, true)", [run]);
    expect(await refusal(insertTasks(placer, taken))).toBe("workflow_over");
    await placer.rollback();
    expect(await play.members(run)).toEqual([]);
    await play.db.value("select sluice.workflow_pause($1, false)", [run]);
    await placer.begin();
    await insertTasks(placer, await takeRow(play, placer));
    expect(await sayPlaced(placer, taken)).toBe(true);
    await placer.commit();
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });

  test("a node that becomes runnable in a paused run is held, not placed", async () => {
    await openPlacing();
    const run = await play.run({
      first: ["task", { type: "a" }],
      one: ["task", { type: "coded", after: ["first"] }],
    });
    const [first] = await play.claim();
    await play.db.value("select sluice.workflow_pause($1, true)", [run]);
    await play.settle(first!, { result: 1 });
    expect(await play.nodes(run)).toEqual({ first: "succeeded", one: "held" });
    expect(await takeRow(play, play.db)).toMatchObject({ run: null, again: false });
  });
});

test("stale unplaced rows are removed in a transaction that does nothing else", async () => {
  await openPlacing();
  const [stale, wantedRun] = await play.start(
    await play.declare({ one: ["task", { type: "coded", input: 1 }] }),
    null,
    null,
  );
  const [placer] = await play.scene.sessions(1);
  await placer.begin();
  expect(await takeRow(play, placer)).toMatchObject({ run: String(stale) });
  await play.db.value("select sluice.workflow_cancel($1)", [stale]);
  await placer.rollback();
  const hold = "select sluice.workflow_lock_unplaced($1, 1::smallint, true)";
  expect(await play.db.value(hold, [stale])).toBe(false);
  expect(await takeRow(play, play.db)).toMatchObject({ run: null, again: true });
  expect(await takeRow(play, play.db)).toMatchObject({ run: String(wantedRun), again: false });
  // Of a long list too.
  const long_ = await play.run(long(1_500));
  await placer.begin();
  await placer.rows("select from sluice.workflow_unplaced where run = $1 for update", [long_]);
  await play.db.value("select sluice.workflow_cancel($1)", [long_]);
  await placer.rollback();
  const more = (): Promise<boolean> => play.db.value("select sluice.workflow_place_many()");
  expect([await more(), await more()]).toEqual([true, false]);
});

test("unplaced rows of a deleted run are removed", async () => {
  await openPlacing();
  const stream = play.streamOf("coded");
  const values = "insert into sluice.workflow_unplaced (run, node, stream, in_code) values (99, 1, $1, true)";
  await play.db.rows(values, [stream]);
  expect((await takeRow(play, play.db)).again).toBe(true);
  expect((await takeRow(play, play.db)).again).toBe(false);
});

test("an idle placer is ended by the server, but not in a user's transaction", async () => {
  expect(await observe(standingStill)).toEqual(wanted(standingStill));
});

test("a node that is already placed or has another type gets no tasks", async () => {
  expect(await observe(placedUnasked)).toEqual(wanted(placedUnasked));
});

test("items with an order key that an ancestor holds are refused", async () => {
  expect(await observe(itemsOfHeldKey)).toEqual(wanted(itemsOfHeldKey));
});

test("a node that another session has locked can fail, and that session waits only for the run", async () => {
  expect(await observe(failedInHand)).toEqual(wanted(failedInHand));
});

describe("nodes that could not be placed", () => {
  test("a node that cannot be placed for a transient reason is postponed, then fails", async () => {
    expect(await observe(putOffTenTimes)).toEqual(wanted(putOffTenTimes));
  });

  test("a node that fails its last try beside a resume does not deadlock", async () => {
    expect(await observe(lastTryBesideResume)).toEqual(wanted(lastTryBesideResume));
  });

  test("a postponed node is tried again with growing delays, beside others of its type", async () => {
    await openPlacing();
    const graph = await play.declare({ one: ["task", { type: "coded" }] });
    const [bad] = await play.start(graph, null);
    const putOff = (): Promise<string> =>
      play.db.value(
        "with put as materialized (select sluice.clock() as at, sluice.workflow_put_off($1, 1::smallint, 'XX000', 'no luck')) select at::text from put",
        [bad],
      );
    const delayMs = (since: string): Promise<number> =>
      play.db.value(
        "select round(extract(epoch from due_at - $2::timestamptz) * 1000)::int from sluice.workflow_unplaced where run = $1",
        [bad, since],
      );
    const delays: number[] = [];
    for (let i = 0; i < 6; i++) delays.push(await delayMs(await putOff()));
    expect(delays).toEqual(delays.toSorted((a, b) => a - b));
    // A minute, and the moment that the statement itself takes.
    expect(delays.at(-1)).toBeLessThan(61_000);
    expect(delays.at(-1)).toBeGreaterThan(30_000);
    const [good] = await play.start(graph, null);
    expect((await takeRow(play, play.db)).run).toBe(String(good));
    // Its time has come: among many others it is not forgotten.
    await play.start(graph, ...Array.from({ length: 50 }, () => null));
    await play.db.rows("update sluice.workflow_unplaced set due_at = 'epoch' where run = $1", [bad]);
    const taken = new Set<string | null>();
    for (let i = 0; i < 200 && !taken.has(String(bad)); i++) taken.add((await takeRow(play, play.db)).run);
    expect(taken.has(String(bad))).toBe(true);
    expect([...taken].filter((run) => run !== String(bad) && run !== String(good))).toEqual([]);
  });

  test.each(["57014", "53200", "XX000"])(
    "a long list that cannot be placed (%s) lets the next be placed, and fails eventually",
    async (state) => {
      await openPlacing();
      const bad = await play.run(long(1_500));
      await play.db.script(`create function sluice.fault() returns trigger language plpgsql as $f$
        begin if new.run = ${bad} then raise exception using errcode = '${state}', message = 'no luck'; end if; return new; end $f$;
        create trigger fault before insert on sluice.workflow_task for each row execute function sluice.fault()`);
      try {
        const good = await play.run(long(1_500));
        // Put off again, it would be for a minute.
        await play.db.rows("update sluice.workflow_unplaced set tries = 5 where run = $1", [bad]);
        const more = (): Promise<boolean> => play.db.value("select sluice.workflow_place_many()");
        expect([await more(), await more(), await more()]).toEqual([true, true, false]);
        expect([await play.nodes(bad), await play.nodes(good)]).toEqual([{ long: "placing" }, { long: "running" }]);
        await play.db.rows("update sluice.workflow_unplaced set tries = 9, due_at = 'epoch'");
        expect([await more(), await more()]).toEqual([true, false]);
        expect(await play.errorOf(bad, "long")).toMatchObject({
          code: "database_busy",
          message: "its tasks could not be created in 10 tries; the last error: no luck",
        });
        await play.db.value("select sluice.workflow_cancel($1)", [good]);
        await play.drain();
      } finally {
        await play.db.script("drop trigger fault on sluice.workflow_task; drop function sluice.fault");
      }
    },
  );
});

test("a backlog of one type does not delay another, and a placer locks one row", async () => {
  await openPlacing();
  await play.db.rows("update sluice.contract set limit_ids = null where type = 'b'");
  const line = await play.declare({ one: ["task", { type: "coded" }] });
  await play.start(line, ...Array.from({ length: 30 }, () => null));
  const [other] = await play.start(await play.declare({ one: ["task", { type: "b" }] }), null);
  const [placer] = await play.scene.sessions(1);
  let tries = 0;
  for (let run = ""; run !== String(other); tries++) {
    expect(tries).toBeLessThan(100);
    await placer.begin();
    run = (await takeRow(play, placer, ["coded", "b"])).run!;
    const free = "select from sluice.workflow_unplaced for update skip locked";
    expect((await play.db.rows(free)).length).toBe(30);
    await placer.rollback();
  }
});

describe("code that kills the process", () => {
  test("a node whose code kills the process is counted each time, and fails after ten", async () => {
    expect(await observe(killedTenTimes)).toEqual(wanted(killedTenTimes));
  });

  test("the nodes of a batch are tried one by one after a crash, and the innocent ones are placed", async () => {
    expect(await observe(diedWithBatch)).toEqual(wanted(diedWithBatch));
  });

  test("tasks of a worker that died while it placed a node are not blamed", async () => {
    expect(await observe(diedPlacing)).toEqual(wanted(diedPlacing));
  });
});

describe("placing many small nodes at once", () => {
  const small = { one: ["task", { type: "coded", input: ref("input") }] } satisfies Nodes;

  test("no node of a batch is placed if one of them was cancelled", async () => {
    expect(await observe(cancelledAmongMany)).toEqual(wanted(cancelledAmongMany));
  });

  test("a batch of small nodes locks its runs in the order of their ids", async () => {
    expect(await observe(lockedInOrder)).toEqual(wanted(lockedInOrder));
  });

  test("each small node gets its own input and its own task, and its run continues", async () => {
    await openPlacing();
    const runs = await play.start(await play.declare(small), 10, 20, 30);
    await play.db.begin();
    const nodes = await takeSmallRows(play, play.db);
    expect(nodes.map(({ input }) => input)).toEqual(["10", "20", "30"]);
    await placeSmallRows(play.db, nodes);
    await play.db.commit();
    await play.drain(({ input }) => ({ result: input }));
    for (const [i, run] of runs.entries()) expect(await play.result(run)).toEqual({ one: (i + 1) * 10 });
    expect(play.started.length).toBe(3);
  });

  test("a batch takes as many small nodes as requested, and no more than fit", async () => {
    await openPlacing();
    await play.start(await play.declare(small), ...Array.from({ length: 5 }, () => "x".repeat(98)));
    const taken = async (of: { max?: number; bytes?: number }): Promise<number> =>
      (await takeSmallRows(play, play.db, of)).filter(({ run }) => run !== null).length;
    expect([await taken({}), await taken({ max: 2 }), await taken({ bytes: 250 })]).toEqual([5, 2, 3]);
  });

  test("a batch skips nodes that another session has locked", async () => {
    await openPlacing();
    await play.start(await play.declare(small), 1, 2);
    const [other] = await play.scene.sessions(1);
    await other.begin();
    expect((await takeSmallRows(play, other, { max: 1 })).length).toBe(1);
    expect((await takeSmallRows(play, play.db)).map(({ input }) => input)).toEqual(["2"]);
    await other.rollback();
  });

  test("a batch leaves out fan-outs, postponed nodes and inputs that cannot be rendered", async () => {
    await openPlacing();
    const graph = await play.declare(small);
    const fan = await play.run({
      many: ["each", { type: "coded", items: [1, 2], input: ref("item"), window: 1 }],
    });
    const [good, late, huge] = await play.start(graph, 1, 2, "x".repeat(500));
    await play.db.rows("update sluice.workflow_run set bytes_max = 400 where id = $1", [huge]);
    await play.db.rows("update sluice.workflow_unplaced set due_at = 'epoch' where run = $1", [late]);
    const rows = await takeSmallRows(play, play.db);
    expect(rows.map(({ run }) => run)).toEqual([String(good), null]);
    const only = (run: number): Promise<unknown> =>
      play.db.rows("delete from sluice.workflow_unplaced where run <> $1", [run]);
    for (const run of [fan, late!, huge!]) {
      await play.db.begin();
      await only(run);
      expect((await takeSmallRows(play, play.db)).map((row) => row.run)).toEqual([null]);
      await play.db.rollback();
    }
  });
});
