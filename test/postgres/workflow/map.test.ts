import { afterEach, describe, expect, test } from "vitest";
import { refusal } from "../../support/sql.js";
import { map as mapItems, sleep as sleepUntil } from "./maps.js";
import { Play, type InHand } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> => void (play = await Play.open({ parent: { concurrency: 1 }, item: {} }));
const map = (parent: InHand, name: string, n: number): Promise<{ run: string; fresh: boolean }> =>
  mapItems(play, parent, name, n);
const sleep = (parent: InHand, ...runs: string[]): Promise<void> => sleepUntil(play, parent, ...runs);
const again = (parent: InHand): Promise<boolean> => play.db.value("select sluice.retry($1)", [parent.id]);

async function begin(): Promise<InHand> {
  await play.db.enqueue(play.streamOf("parent"));
  const [parent] = await play.claim();
  return parent!;
}

const ITEM = { result: 1 };
/** Without the parent, which the test itself ends. */
const items = (t: InHand): { result: unknown } | "keep" =>
  t.type === "item" ? { result: (t.input as number) * 2 } : "keep";

describe("a handler with a map", () => {
  test("a parent sleeps without its slots, wakes when its items have ended, and finds their results", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 5);
    await sleep(parent, run);
    expect(await play.scene.state(parent.id)).toBe("waiting");
    // Its type lets one run at once: another runs while it waits.
    await begin();
    const other = play.hand.find((t) => t.type === "parent");
    await play.settle(other!, { result: 1 });
    await play.drain(items);
    expect(play.peak.get("item")).toBe(2);
    const again = play.hand.find((t) => t.type === "parent")!;
    expect([again.id, again.attempt]).toEqual([parent.id, 1]);
    expect(await map(again, "pages", 5)).toEqual({ run, fresh: false });
    expect(await play.result(Number(run))).toMatchObject({ results: [0, 2, 4, 6, 8] });
    await play.settle(again, { result: 1 });
  });

  test("a parent does not sleep if its items ended before it could", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 2);
    await play.drain(items);
    await sleep(parent, run);
    const [again] = await play.claim();
    expect(again!.id).toBe(parent.id);
    await play.settle(again!, { result: 1 });
  });

  test("a map of no items ends immediately", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "none", 0);
    expect(await play.state(Number(run))).toBe("succeeded");
    await sleep(parent, run);
    expect((await play.claim()).length).toBe(1);
    await play.settle(play.hand[0]!, { result: 1 });
  });

  test("a parent with two maps wakes when either ends, and finds each again", async () => {
    await open();
    const parent = await begin();
    const one = await map(parent, "one", 1);
    const two = await map(parent, "two", 1);
    await sleep(parent, one.run, two.run);
    const [first, second] = await play.claim();
    await play.settle(first!, { result: 1 });
    const [again] = await play.claim();
    expect(again!.id).toBe(parent.id);
    await sleep(again!, two.run);
    expect(await play.claim()).toEqual([]);
    await play.settle(second!, { result: 1 });
    expect((await play.claim()).map((t) => t.id)).toEqual([parent.id]);
    await play.settle(play.hand[0]!, { result: 1 });
  });

  test("a parent resumes after a crash without repeating finished items", async () => {
    await open();
    await play.db.enqueue(play.streamOf("parent"));
    const crashed = await play.db.register([play.streamOf("parent")]);
    const first = play.worker;
    play.worker = crashed;
    const [parent] = await play.claim();
    const { run } = await map(parent!, "pages", 4);
    play.worker = first;
    await play.settle((await play.claim(1))[0]!, { result: 1 });
    await play.db.rows("update sluice.worker set expires_at = sluice.clock() - interval '1 s' where id = $1", [
      crashed.id,
    ]);
    await play.db.reap();
    play.hand = [];
    const again = (await play.claim()).find((t) => t.type === "parent")!;
    expect(await map(again, "pages", 4)).toEqual({ run, fresh: false });
    await sleep(again, run);
    await play.drain(items);
    expect(play.started.filter((t) => t.type === "item").map((t) => t.input)).toEqual([0, 1, 2, 3]);
    await play.settle(
      play.hand.find((t) => t.type === "parent")!,
      { result: 1 },
    );
  });

  test("a cancel of a sleeping parent cancels its items", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 4);
    await sleep(parent, run);
    expect(await play.db.cancel([parent.id])).toEqual(["cancelled"]);
    await play.keeper();
    await play.drain();
    expect(await play.state(Number(run))).toBe("cancelled");
    expect(play.started.filter((t) => t.type === "item")).toEqual([]);
  });

  test("a cancel of a parent at the moment it goes to sleep ends it", async () => {
    await open();
    const [other] = await play.scene.sessions(1);
    const parent = await begin();
    const { run } = await map(parent, "pages", 4);
    await play.db.begin();
    await sleep(parent, run);
    // Other sessions still see it running.
    expect(await other.cancel([parent.id])).toEqual(["asked"]);
    await play.db.commit();
    await play.keeper();
    expect(await play.scene.state(parent.id)).toBe("cancelled");
    await play.drain();
    expect(await play.state(Number(run))).toBe("cancelled");
  });

  test("retry reruns only unsuccessful items and their nested maps", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 3);
    await sleep(parent, run);
    // One of the items fans out too, and an item of that fails.
    const [one] = await play.claim();
    const inner = await map(one!, "parts", 2);
    await sleep(one!, inner.run);
    const [, part] = await play.members(Number(inner.run));
    const bad = [parent.id, one!.id, part!.id];
    await play.drain((t) => (bad.includes(t.id) ? { fail: "x" } : ITEM));
    expect([await play.state(Number(run)), await play.state(Number(inner.run))]).toEqual(["failed", "failed"]);
    const before = play.started.length;
    expect(await again(parent)).toBe(true);
    await play.drain(() => ITEM);
    expect(play.started.slice(before).map((t) => t.id)).toEqual(bad);
    expect([await play.state(Number(run)), await play.state(Number(inner.run))]).toEqual(["succeeded", "succeeded"]);
  });

  test("retry of a parent is refused while its items are being cancelled", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 4);
    const [item] = await play.claim(1);
    await play.settle(parent, { fail: "x" });
    await play.keeper();
    expect(await play.state(Number(run))).toBe("cancelling");
    expect(await refusal(again(parent))).toBe("workflow_stopping");
    await play.settle(item!, "cancel");
    expect(await play.state(Number(run))).toBe("cancelled");
    expect(await again(parent)).toBe(true);
    // Its first items are back with it, and no keeper was needed.
    const [back, ...others] = await play.claim();
    expect(others.map((t) => t.type)).toEqual(["item", "item"]);
    expect(await map(back!, "pages", 4)).toEqual({ run, fresh: false });
    await sleep(back!, run);
    await play.drain(items);
    expect(await play.counts(Number(run), "pages")).toMatchObject({ succeeded: 4 });
    await play.settle(play.hand[0]!, { result: 1 });
  });

  test("retry of a parent keeps items that succeeded while they were being cancelled", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 2);
    const hand = await play.claim();
    await play.settle(parent, { fail: "x" });
    await play.keeper();
    for (const item of hand) await play.settle(item, { result: 1 });
    expect(await play.state(Number(run))).toBe("cancelled");
    expect(await again(parent)).toBe(true);
    expect(await play.state(Number(run))).toBe("succeeded");
    const [back] = await play.claim();
    await play.settle(back!, { result: 1 });
  });

  test("retry of a parent opens a paused window again, although its row still exists", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 4);
    const hand = await play.claim();
    await play.db.value("select sluice.workflow_pause($1, true)", [run]);
    await play.db.cancel([parent.id]);
    await play.settle(parent, "cancel");
    // Slots that are given back in a user's transaction are taken note of, and counted later.
    for (const item of hand) await play.db.settleInTransaction(play.worker, item);
    await play.db.rows("select sluice.workflow_orphans(100)");
    await play.db.rows("select sluice.workflow_keep(1000)");
    expect(await play.state(Number(run))).toBe("cancelled");
    play.hand = [];
    const cap = "select cap from sluice.lane where id >> 60 = 2";
    expect(await play.db.value(cap)).toBe(0);
    expect(await again(parent)).toBe(true);
    expect(await play.db.value(cap)).toBe(2);
    await play.drain(() => ITEM);
  });

  test("a map created after its task had ended is cancelled", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 2);
    await play.settle(parent, { fail: "x" });
    expect(await play.db.value("select count(*)::int from sluice.workflow_orphan")).toBe(1);
    // As if it was not found when the task ended.
    await play.db.rows("delete from sluice.workflow_orphan");
    expect(await play.db.value("select cancelled from sluice.workflow_orphans(100)")).toBe(1);
    expect(await play.state(Number(run))).toBe("cancelled");
    expect(await play.db.value("select cancelled from sluice.workflow_orphans(100)")).toBe(0);
    expect(await play.db.value("select count(*)::int from sluice.workflow_orphan")).toBe(0);
  });

  test("a map is refused if the worker does not hold its task", async () => {
    await open();
    const parent = await begin();
    await play.settle(parent, { result: 1 });
    expect(await refusal(map(parent, "pages", 1))).toBe("lease_lost");
    await play.db.rollback();
  });
});
