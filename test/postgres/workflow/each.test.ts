import { afterEach, describe, expect, test } from "vitest";
import { Play, ref, type InHand, type Nodes } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> => void (play = await Play.open({ item: {}, after: {}, list: {} }));

type OnError = "failFast" | "finish" | "collect";

const fan = (window?: number, onError: OnError = "finish"): Nodes => ({
  each: [
    "each",
    {
      type: "item",
      items: ref("input", "items"),
      input: { it: ref("item"), i: ref("index"), all: ref("input", "same") },
      ...(window === undefined ? {} : { window }),
      onError,
    },
  ],
  next: [
    "task",
    {
      type: "after",
      after: [{ node: "each", on: onError === "collect" ? "success" : "end" }],
      input: {
        results: ref("each", "results"),
        second: ref("each", "results", "1", "i"),
        errors: ref("each", "errors"),
        counts: ref("each", "counts"),
      },
    },
  ],
});

const letters = (n: number): string[] => Array.from({ length: n }, (_, i) => `item ${i}`);
const indexOf = (t: InHand): number => (t.input as { i: number }).i;
const itemsStarted = (): number[] => play.started.filter((t) => t.type === "item").map(indexOf);
const thens = (): InHand[] => play.started.filter((t) => t.type === "after");
const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

describe.each([
  [20, 3, 3],
  [5, 3, 3],
  [5, 1, 1],
  [1, 3, 1],
  [3, 10, 3],
  [4, undefined, 4],
])("%i items with window %s", (n, window, peak) => {
  test(`run at most ${peak} at once, in order and each once, and the next node runs once`, async () => {
    await open();
    const run = await play.run(fan(window), { items: letters(n), same: { x: 1 } });
    for (let guard = 0; guard < 100; guard++) {
      await play.claim();
      const [first] = play.hand;
      if (first === undefined) break;
      await play.settle(first, { result: { i: first.type === "item" ? indexOf(first) : null } });
    }
    expect(play.peak.get("item")).toBe(peak);
    expect(itemsStarted()).toEqual(numbers(n));
    expect(thens().length).toBe(1);
    expect(play.started[0]!.input).toEqual({ it: "item 0", i: 0, all: { x: 1 } });
    expect(thens()[0]!.input).toEqual({
      results: numbers(n).map((i) => ({ i })),
      second: n > 1 ? 1 : null,
      errors: [],
      counts: { total: n, succeeded: n, failed: 0, cancelled: 0 },
    });
    expect(await play.state(run)).toBe("succeeded");
  });
});

test("several completions in one settle start as many items as the window admits", async () => {
  await open();
  await play.run(fan(3), { items: letters(10) });
  const first = await play.claim();
  expect(first.map(indexOf)).toEqual([0, 1, 2]);
  expect(
    (
      await play.step(
        9,
        first.map((t) => [t, 1]),
      )
    ).map(indexOf),
  ).toEqual([3, 4, 5]);
  await play.drain();
  expect(itemsStarted()).toEqual(numbers(10));
});

test("an empty list ends immediately", async () => {
  await open();
  const run = await play.run(fan(3), { items: [] });
  expect((await play.claim()).map((t) => t.type)).toEqual(["after"]);
  expect(thens()[0]!.input).toMatchObject({ results: [], counts: { total: 0 } });
  await play.drain();
  expect(await play.state(run)).toBe("succeeded");
});

test.each([
  ["text", "must be a list, not a JSON"],
  [{ a: 1 }, "must be a list, not a JSON"],
  [7, "must be a list, not a JSON"],
  [null, "the reference finds nothing"],
  [undefined, "the reference finds nothing"],
])("items that are %j fail the node with a reason, and a node after its end runs", async (items, why) => {
  await open();
  const run = await play.run(fan(3), { items });
  expect(await play.errorOf(run, "each")).toMatchObject({ code: "items_not_a_list" });
  expect((await play.errorOf(run, "each"))?.message).toContain(why);
  await play.drain();
  expect(thens().length).toBe(1);
  expect(await play.state(run)).toBe("failed");
});

describe("failed items of a fan-out:", () => {
  const some = (t: InHand): { result: unknown } | { fail: string } =>
    t.type === "item" && [1, 3].includes(indexOf(t)) ? { fail: `no ${indexOf(t)}` } : { result: indexOf(t) };

  test("finish runs the other items, then fails the node", async () => {
    await open();
    const run = await play.run(fan(2, "finish"), { items: letters(6) });
    await play.drain(some);
    expect(itemsStarted()).toEqual(numbers(6));
    expect(await play.nodes(run)).toEqual({ each: "failed", next: "succeeded" });
    expect(thens()[0]!.input).toMatchObject({ results: [0, null, 2, null, 4, 5] });
    expect(await play.state(run)).toBe("failed");
  });

  test.each([
    ["finish", "2 of 6 items failed: no 1"],
    ["failFast", "1 of 6 items failed: no 1"],
  ] as const)("%s reports how many items failed, and the first error", async (onError, message) => {
    await open();
    const run = await play.run(
      {
        ...fan(2, onError),
        why: ["task", { type: "after", after: [{ node: "each", on: "failure" }], input: ref("each", "error") }],
      },
      { items: letters(6) },
    );
    await play.drain(some);
    const error = {
      name: "SluiceError",
      code: "items_failed",
      message,
      cause: { message: "no 1" },
    };
    expect(await play.errorOf(run, "each")).toEqual(error);
    expect(thens().map((t) => t.input)).toContainEqual(error);
  });

  test("collect succeeds with results and errors by index", async () => {
    await open();
    const run = await play.run(fan(2, "collect"), { items: letters(5) });
    await play.drain(some);
    expect(thens()[0]!.input).toEqual({
      results: [0, null, 2, null, 4],
      second: null,
      errors: [
        { index: 1, state: "failed", error: { message: "no 1" } },
        { index: 3, state: "failed", error: { message: "no 3" } },
      ],
      counts: { total: 5, succeeded: 3, failed: 2, cancelled: 0 },
    });
    expect(await play.state(run)).toBe("succeeded");
  });

  test("failFast starts no further items, cancels waiting ones and asks running ones to stop", async () => {
    await open();
    const run = await play.run(fan(3, "failFast"), { items: letters(20) });
    const [first, second, third] = await play.claim();
    await play.settle(second!, { fail: "no" });
    expect(await play.claim()).toEqual([]);
    expect(await play.counts(run, "each")).toMatchObject({ failed: 1, cancelled: 17 });
    expect(await play.db.value("select array_agg(id order by id)::text from sluice.stop")).toBe(
      `{${first!.id},${third!.id}}`,
    );
    // One is asked while it fails and would be tried again, the other ends well.
    await play.settle(first!, "retry");
    await play.settle(third!, { result: 1 });
    expect(await play.counts(run, "each")).toEqual({
      total: 20,
      succeeded: 1,
      failed: 1,
      cancelled: 18,
    });
    await play.drain();
    expect(itemsStarted()).toEqual([0, 1, 2]);
    expect(await play.nodes(run)).toEqual({ each: "failed", next: "succeeded" });
  });

  test("failFast counts only running items as started, not cancelled ones", async () => {
    await open();
    const run = await play.run(fan(8, "failFast"), { items: letters(20) });
    const started = (): Promise<number> =>
      play.db.value("select started from sluice.workflow_progress where run = $1 and name = 'each'", [run]);
    const [first, second] = await play.claim(3);
    expect(await started()).toBe(8);
    await play.settle(first!, { fail: "no" });
    // Two run still; five more had a place and were cancelled.
    expect(await play.counts(run, "each")).toMatchObject({ failed: 1, cancelled: 17 });
    expect(await started()).toBe(2);
    await play.settle(second!, { result: 1 });
    expect(await started()).toBe(1);
    await play.drain();
    expect(await started()).toBe(0);
  });

  test("failFast cancels many items in pieces, and none starts meanwhile", async () => {
    await open();
    const run = await play.run(fan(5, "failFast"), { items: letters(3_000) });
    await play.keeper();
    const five = await play.claim();
    for (const t of five.slice(0, 4)) await play.settle(t, { result: 1 });
    await play.claim();
    await play.settle(five[4]!, { fail: "no" });
    expect(await play.claim()).toEqual([]);
    expect((await play.counts(run, "each"))["cancelled"]).toBeLessThan(1_500);
    await play.drain((t) => (t.type === "item" ? "cancel" : { result: 1 }));
    expect(await play.counts(run, "each")).toEqual({
      total: 3_000,
      succeeded: 4,
      failed: 1,
      cancelled: 2_995,
    });
    expect(itemsStarted().length).toBe(9);
    expect(thens().length).toBe(1);
  });

  test("failFast without a window cancels ready items", async () => {
    await open();
    const run = await play.run(fan(undefined, "failFast"), { items: letters(30) });
    const [first] = await play.claim(1);
    await play.settle(first!, { fail: "no" });
    expect((await play.claim()).map((t) => t.type)).toEqual(["after"]);
    expect(await play.counts(run, "each")).toMatchObject({ failed: 1, cancelled: 29 });
    await play.drain();
  });

  test("an item that is retried releases its place in the window and is the next to be admitted", async () => {
    await open();
    const run = await play.run(fan(1), { items: letters(3) });
    await play.settle((await play.claim())[0]!, "retry");
    await play.db.due();
    expect((await play.claim()).map(indexOf)).toEqual([1]);
    await play.drain();
    expect(itemsStarted()).toEqual([0, 1, 0, 2]);
    expect(await play.counts(run, "each")).toMatchObject({ succeeded: 3 });
  });
});

test("items with a limit of their own pass both the limit and the window", async () => {
  play = await Play.open({ item: { concurrency: 2 }, after: {} });
  await play.run(fan(3), { items: letters(7) });
  await play.drain();
  expect(play.peak.get("item")).toBe(2);
  expect(itemsStarted()).toEqual(numbers(7));
});

test("two fan-outs of one type each have their own window", async () => {
  await open();
  await play.start(await play.declare(fan(2)), { items: letters(5) }, { items: letters(5) });
  expect((await play.claim()).length).toBe(4);
  await play.drain();
  expect(thens().length).toBe(2);
});

test("an item with an input that is too large fails the node, and none of its tasks exists", async () => {
  await open();
  const run = await play.run(fan(3), {
    items: ["a", "x".repeat(1_000_000), "b"],
    same: "y".repeat(100_000),
  });
  expect(await play.errorOf(run, "each")).toMatchObject({ code: "input_too_large" });
  await play.drain();
  expect((await play.members(run)).map((m) => m.node)).toEqual(["next"]);
});

test("the results of a nested list are the items of the next node", async () => {
  await open();
  await play.run({
    list: ["task", { type: "list" }],
    first: [
      "each",
      {
        type: "item",
        after: ["list"],
        items: ref("list", "ids"),
        input: { i: ref("index") },
        window: 2,
      },
    ],
    second: [
      "each",
      {
        type: "after",
        after: ["first"],
        items: ref("first", "results"),
        input: ref("item", "n"),
        window: 2,
      },
    ],
  });
  await play.drain((t) => ({
    result: t.type === "list" ? { ids: [5, 6, 7] } : t.type === "item" ? { n: indexOf(t) * 10 } : 1,
  }));
  expect(thens().map((t) => t.input)).toEqual([0, 10, 20]);
});
