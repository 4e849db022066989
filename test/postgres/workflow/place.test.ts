import { afterEach, expect, test } from "vitest";
import type { Session } from "../../support/sql.js";
import { Play, ref, type Nodes } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const RECORD = "\u001e";

/** A type that decides its limits in code, and one with a limit per key. */
async function open(): Promise<number> {
  play = await Play.open({ a: {}, coded: {}, other: {} });
  await play.db.rows(
    "update sluice.contract set limit_ids = null, ordered = true where type = 'coded'",
  );
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
async function place(
  db: Session,
  limit: number,
  piece = 2,
  before?: () => Promise<void>,
): Promise<boolean> {
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
  const placed = await db.value<boolean>("select sluice.workflow_placed($1, $2)", [
    taken.run,
    taken.node,
  ]);
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

test("a settle by a worker that does not know the next type keeps the step until one comes that does", async () => {
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
  expect(
    many
      .filter((t) => (t.input as { key: string }).key === "x")
      .map((t) => (t.input as { n: number }).n),
  ).toEqual([0, 1, 4]);
  expect(play.peak.get("coded")).toBe(2);
});

test("a step tells a worker that serves the type, and only that one, that there is something to place", async () => {
  await open();
  await play.run(nodes);
  const [first] = await play.claim();
  await play.settle(first!, ending(first!));
  const told = async (types: string[]): Promise<boolean> => {
    const streams = types.map((t) => play.streamOf(t));
    const worker = await play.db.register(streams);
    const rows = await play.db.rows<{ stream: number }>(
      "select stream from sluice.step($1, 16, $2, 0) where id is null",
      [worker.id, streams],
    );
    return rows.some((r) => r.stream === -1);
  };
  expect(await told(["a", "other"])).toBe(false);
  expect(await told(["coded"])).toBe(true);
});

test("of two that would place the same node one does", async () => {
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
  // What it left behind is cleaned away by whoever looks next.
  expect(await take(play.db)).toBeNull();
  await play.drain();
  expect(play.started).toEqual([]);
  expect(await play.state(run)).toBe("cancelled");
});

test("inputs that the task does not take fail the node", async () => {
  await open();
  const run = await play.run({
    one: ["task", { type: "coded" }],
    two: ["task", { type: "a", after: [{ node: "one", on: "failure" }] }],
  });
  const taken = await take(play.db);
  const error = { name: "SluiceError", code: "input_invalid", message: "no key" };
  expect(
    await play.db.value("select sluice.workflow_misplaced($1, $2, $3)", [run, taken!.node, error]),
  ).toBe(true);
  await play.drain();
  expect(await play.errorOf(run, "one")).toMatchObject({ code: "input_invalid" });
  expect(play.started.map((t) => t.type)).toEqual(["a"]);
});

test("a list that is long is placed by a transaction of its own, and while it is nobody waits for the run", async () => {
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
