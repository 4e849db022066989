import { afterEach, describe, expect, test } from "vitest";
import { refusal } from "../../support/sql.js";
import { observe, wanted } from "../schedules/schedule.js";
import { retriedWhilePaused, windowIsLeft } from "./again.js";
import { Play, ref, type InHand, type Nodes } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> => void (play = await Play.open({ a: {}, b: {}, c: {}, item: {} }));
const cancel = (run: number): Promise<string> => play.db.value("select sluice.workflow_cancel($1, 'enough')", [run]);
const retry = (run: number): Promise<number> => play.db.value("select sluice.workflow_retry($1)", [run]);
const pause = (run: number, paused: boolean): Promise<boolean> =>
  play.db.value("select sluice.workflow_pause($1, $2)", [run, paused]);
const setWindow = (run: number, n: number): Promise<boolean> =>
  play.db.value("select sluice.workflow_window($1, 'each', $2)", [run, n]);
const indexes = (tasks: readonly InHand[]): unknown[] => tasks.map((t) => t.input);
const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const startedTypes = (): string[] => play.started.map((t) => t.type);

const chain: Nodes = {
  one: ["task", { type: "a" }],
  two: ["task", { type: "b", after: ["one"] }],
  three: ["task", { type: "c", after: ["two"] }],
};
const fan = (n: number, window = 3, onError: "finish" | "failFast" | "collect" = "finish"): Nodes => ({
  each: [
    "each",
    {
      type: "item",
      items: numbers(n),
      input: ref("item"),
      window,
      onError,
    },
  ],
  last: ["task", { type: "c", after: ["each"], input: ref("each", "results") }],
});

describe("cancel of a run", () => {
  test("cancel of a run that has not started ends it immediately, and nothing runs", async () => {
    await open();
    const run = await play.run(chain);
    expect(await cancel(run)).toBe("cancelled");
    expect(await cancel(run)).toBe("over");
    await play.drain();
    expect(play.started).toEqual([]);
    expect(await play.nodes(run)).toEqual({
      one: "cancelled",
      two: "cancelled",
      three: "cancelled",
    });
    expect(await play.state(run)).toBe("cancelled");
  });

  test("cancel asks a running task to stop, and nothing follows whatever its outcome", async () => {
    await open();
    const runs = await play.start(await play.declare(chain), 1, 2, 3);
    const tasks = await play.claim();
    for (const run of runs) expect(await cancel(run)).toBe("asked");
    expect(await play.state(runs[0]!)).toBe("cancelling");
    await play.settle(tasks[0]!, { result: 1 });
    await play.settle(tasks[1]!, { fail: "x" });
    await play.settle(tasks[2]!, "retry");
    await play.drain();
    for (const run of runs) expect(await play.state(run)).toBe("cancelled");
    expect(play.started.length).toBe(3);
  });

  test("cancel during a fan-out starts none of the waiting items", async () => {
    await open();
    const run = await play.run(fan(10));
    const tasks = await play.claim();
    expect(await cancel(run)).toBe("asked");
    expect(await play.counts(run, "each")).toMatchObject({ cancelled: 7 });
    expect(await play.claim()).toEqual([]);
    for (const t of tasks) await play.settle(t, { result: 1 });
    await play.drain();
    expect(await play.nodes(run)).toEqual({ each: "cancelled", last: "cancelled" });
  });

  test("cancel of many waiting items proceeds in pieces, and then the run ends", async () => {
    await open();
    const run = await play.run(fan(2_500));
    await play.keeper();
    expect(await cancel(run)).toBe("asked");
    await play.drain();
    expect(play.started).toEqual([]);
    expect(await play.counts(run, "each")).toMatchObject({ cancelled: 2_500 });
    expect(await play.state(run)).toBe("cancelled");
  });

  test("cancel removes items that are not placed yet", async () => {
    await open();
    const run = await play.run(fan(2_500));
    expect(await cancel(run)).toBe("cancelled");
    await play.drain();
    expect(play.started).toEqual([]);
    expect(await play.db.value("select count(*)::int from sluice.workflow_unplaced")).toBe(0);
  });

  test.each<[string, Nodes]>([
    ["asleep", { wait: ["sleep", { ms: 60_000 }] }],
    ["waiting for an event", { wait: ["waitFor", { event: "go" }] }],
  ])("cancel ends a run that is %s", async (_, nodes) => {
    await open();
    const run = await play.run({ ...nodes, after: ["task", { type: "a", after: ["wait"] }] });
    expect(await cancel(run)).toBe("cancelled");
    await play.drain();
    expect(play.started).toEqual([]);
  });

  test("cancel ends a paused run, and changes neither an ended nor an unknown one", async () => {
    await open();
    const run = await play.run(chain);
    await pause(run, true);
    expect(await cancel(run)).toBe("cancelled");
    expect(await cancel(99)).toBe("unknown");
    const whole = await play.run(chain);
    await play.drain();
    expect(await cancel(whole)).toBe("over");
    expect(await play.state(whole)).toBe("succeeded");
  });

  test("cancel starts no branch for failures", async () => {
    await open();
    const run = await play.run({
      one: ["task", { type: "a" }],
      undo: ["task", { type: "b", after: [{ node: "one", on: "failure" }] }],
      always: ["task", { type: "c", after: [{ node: "one", on: "end" }] }],
    });
    const [task] = await play.claim();
    await cancel(run);
    await play.settle(task!, { fail: "x" });
    await play.drain();
    expect(startedTypes()).toEqual(["a"]);
  });
});

describe("cancel of a long fan-out", () => {
  test.each([1_600, undefined])(
    "cancel asks running items to stop first, wherever they are, with a window of %s",
    async (window) => {
      await open();
      const run = await play.run({
        each: ["each", { type: "item", items: numbers(3_000), input: ref("item"), ...(window && { window }) }],
      });
      await play.keeper();
      while (play.hand.length < 1_600) await play.claim(800);
      // More than are cancelled at once stand before them.
      await play.db.settle(play.worker, "release", play.hand.splice(0, 1_590));
      expect(await cancel(run)).toBe("asked");
      const asked = "select array_agg(id order by id)::int[] from sluice.stop";
      expect(await play.db.value(asked)).toEqual(play.hand.map((t) => t.id));
      // What has passed the window, or has none, goes in pieces.
      const further = (): Promise<string> => play.db.value("select sluice.workflow_continue($1, 1000)", [run]);
      for (let i = 0; i < 5 && (await further()) === "more"; i++);
      expect(await play.claim()).toEqual([]);
      await play.drain();
      expect(await play.counts(run, "each")).toMatchObject({ succeeded: 10, cancelled: 2_990 });
    },
  );

  test("cancel of an ended fan-out does not wait", async () => {
    await open();
    await play.run(chain);
    await play.drain();
    // A verb that sleeps and retries raises an error here.
    await play.db.script(`create function public.pg_sleep(double precision) returns void language plpgsql
      as 'begin raise exception using errcode = ''SLEPT''; end'; set search_path = public, pg_catalog`);
    const ids = (await play.members(1)).map((m) => m.id);
    const answers = play.db.cancel([...ids, 424_242]);
    expect(await answers.catch((e: unknown) => e)).toEqual(["over", "over", "over", "unknown"]);
    await play.db.script("drop function public.pg_sleep(double precision)");
  });
});

describe("retry of a run", () => {
  test("retry reruns failed and skipped nodes, and keeps succeeded ones", async () => {
    await open();
    const run = await play.run(chain);
    await play.drain((t) => (t.type === "b" ? { fail: "x" } : { result: 1 }));
    expect(await play.nodes(run)).toEqual({ one: "succeeded", two: "failed", three: "skipped" });
    expect(await retry(run)).toBe(1);
    expect(await play.state(run)).toBe("running");
    await play.drain();
    expect(startedTypes()).toEqual(["a", "b", "b", "c"]);
    expect(await play.state(run)).toBe("succeeded");
    expect(await retry(run)).toBe(0);
  });

  test.each(["finish", "failFast"] as const)(
    "retry of an each with %s reruns only unsuccessful items",
    async (onError) => {
      await open();
      const run = await play.run(fan(6, 2, onError));
      await play.drain((t) => (t.type === "item" && t.input === 1 ? { fail: "x" } : { result: t.input }));
      expect(await play.state(run)).toBe("failed");
      const { succeeded } = await play.counts(run, "each");
      const before = play.started.length;
      play.peak.clear();
      expect(await retry(run)).toBe(1);
      await play.drain((t) => ({ result: t.input }));
      const again = play.started.slice(before).filter((t) => t.type === "item");
      expect(again.length).toBe(6 - succeeded!);
      expect(play.peak.get("item")).toBeLessThanOrEqual(2);
      expect(play.started.at(-1)!.input).toEqual([0, 1, 2, 3, 4, 5]);
      expect(await play.state(run)).toBe("succeeded");
    },
  );

  test("retry of a node with an input that could not be rendered renders it again", async () => {
    await open();
    const run = await play.run({
      one: ["task", { type: "a" }],
      each: ["each", { type: "item", after: ["one"], items: ref("one"), input: ref("item") }],
    });
    await play.drain(() => ({ result: "no list" }));
    expect(await retry(run)).toBe(1);
    expect(await play.state(run)).toBe("failed");
    expect(await play.errorOf(run, "each")).toMatchObject({ code: "items_not_a_list" });
  });

  test("retry of a cancelled run continues where it was", async () => {
    await open();
    const run = await play.run(chain);
    await play.settle((await play.claim())[0]!, { result: 1 });
    await cancel(run);
    await play.drain();
    expect(await retry(run)).toBe(2);
    await play.drain();
    expect(startedTypes()).toEqual(["a", "b", "c"]);
    expect(await play.state(run)).toBe("succeeded");
  });

  test("retry starts the branch for a failure again if the node fails again", async () => {
    await open();
    const run = await play.run({
      one: ["task", { type: "a" }],
      undo: ["task", { type: "b", after: [{ node: "one", on: "failure" }] }],
    });
    const bad = (t: InHand): { fail: string } | { result: number } => (t.type === "a" ? { fail: "x" } : { result: 1 });
    await play.drain(bad);
    await retry(run);
    await play.drain(bad);
    expect(startedTypes()).toEqual(["a", "b", "a", "b"]);
  });

  test("retry is refused beside a running branch that the failure started", async () => {
    await open();
    const run = await play.run({
      one: ["task", { type: "a" }],
      undo: ["task", { type: "b", after: [{ node: "one", on: "failure" }] }],
      beside: ["task", { type: "c" }],
    });
    const [one] = await play.claim();
    await play.settle(one!, { fail: "x" });
    expect(await refusal(retry(run))).toBe("workflow_running");
    await play.drain();
    expect(await retry(run)).toBe(1);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });

  test("retry is refused while the run is being cancelled", async () => {
    await open();
    const run = await play.run(chain);
    const [task] = await play.claim();
    await cancel(run);
    expect(await refusal(retry(run))).toBe("workflow_stopping");
    await play.settle(task!, "cancel");
    expect(await retry(run)).toBe(3);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });

  test("retry of a paused run is refused until it is resumed, and a run that ended while paused continues", async () => {
    await open();
    expect(await observe(retriedWhilePaused)).toEqual(wanted(retriedWhilePaused));
  });

  test("retry of one item counts once while its node runs, and is refused when the node has ended", async () => {
    await open();
    const run = await play.run(fan(3, 3));
    const [first, ...rest] = await play.claim();
    const again = (): Promise<boolean> => play.db.value("select sluice.retry($1)", [first!.id]);
    await play.settle(first!, { fail: "x" });
    expect(await again()).toBe(true);
    expect(await play.counts(run, "each")).toMatchObject({ failed: 0 });
    for (const t of rest) await play.settle(t, { fail: "x" });
    await play.drain((t) => (t.type === "item" ? { fail: "x" } : { result: 1 }));
    expect(await play.counts(run, "each")).toMatchObject({ failed: 3 });
    expect(await refusal(again())).toBe("workflow_over");
  });
});

describe("pause and windows", () => {
  test("a paused run starts no node until it is resumed", async () => {
    await open();
    const run = await play.run(chain);
    const [task] = await play.claim();
    expect(await pause(run, true)).toBe(true);
    await play.settle(task!, { result: 1 });
    await play.drain();
    expect(startedTypes()).toEqual(["a"]);
    expect(await play.nodes(run)).toEqual({ one: "succeeded", two: "held", three: "pending" });
    expect(await play.state(run)).toBe("paused");
    await pause(run, false);
    await play.drain();
    expect(startedTypes()).toEqual(["a", "b", "c"]);
    expect(await pause(run, true)).toBe(false);
  });

  test("a paused fan-out lets running items finish and starts no others, ready or waiting", async () => {
    await open();
    const run = await play.run(fan(8, 4));
    const [one, two] = await play.claim(2);
    await pause(run, true);
    expect(await play.claim()).toEqual([]);
    await play.step(9, [[one!, 1]]);
    await play.settle(two!, { result: 1 });
    await play.drain();
    expect(play.started.length).toBe(2);
    await pause(run, false);
    expect(indexes(await play.claim())).toEqual([2, 3, 4, 5]);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });

  test("a raised window admits more items immediately, and a lowered one lets running items finish", async () => {
    await open();
    const run = await play.run(fan(20, 2));
    expect((await play.claim()).length).toBe(2);
    expect(await setWindow(run, 5)).toBe(true);
    expect(indexes(await play.claim())).toEqual([2, 3, 4]);
    expect(await setWindow(run, 1)).toBe(true);
    for (const t of play.hand.slice(0, 4)) {
      await play.settle(t, { result: 1 });
      await play.keeper();
      expect(await play.claim()).toEqual([]);
    }
    expect((await play.step(9, [[play.hand[0]!, 1]])).length).toBe(1);
    play.peak.clear();
    await play.drain();
    expect(play.peak.get("item")).toBe(1);
    expect(await play.state(run)).toBe("succeeded");
    expect(await setWindow(run, 2)).toBe(false);
    expect(await refusal(setWindow(run, 0))).toBe("invalid_option");
  });

  test("a window without waiting items leaves no row behind", async () => {
    await open();
    expect(await observe(windowIsLeft)).toEqual(wanted(windowIsLeft));
    // Shut by a pause, when those that stood there were cancelled one by one.
    const run = await play.run(fan(6, 2));
    const hand = await play.claim();
    await pause(run, true);
    for (const t of hand) await play.settle(t, { result: 1 });
    const left = (await play.members(run)).filter((m) => m.state === "waiting").map((m) => m.id);
    await play.db.cancel(left);
    await play.keeper();
    await play.keeper();
    expect(await play.nodes(run)).toMatchObject({ each: "cancelled" });
    expect(await play.db.value("select count(*)::int from sluice.lane")).toBe(0);
  });

  test("a lowered window returns ready items to its line", async () => {
    await open();
    const run = await play.run(fan(6, 4));
    await play.claim(1);
    await setWindow(run, 1);
    expect(await play.claim()).toEqual([]);
    await play.keeper();
    await play.drain();
    expect(play.started.slice(0, 6).map((t) => t.input)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(play.peak.get("item")).toBe(1);
  });
});
