import { afterEach, describe, expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import {
  cancelledBeforeMapsAreBack,
  cancelledWithMaps,
  cancelMaps,
  nested as nestedIn,
  retriedWithPausedMap,
  runInHand,
  settledBesideMaker,
  types,
} from "./inner.js";
import { follow, map, pauseAll, sleep } from "./maps.js";
import { Play } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const states = async (...runs: string[]): Promise<string[]> => {
  const found: string[] = [];
  for (const run of runs) found.push(await play.state(Number(run)));
  return found;
};

async function nested(items = 3, window = 1): ReturnType<typeof nestedIn> {
  play = await Play.open(types);
  return nestedIn(play, items, window);
}

describe("a pause of a run and its maps", () => {
  test("pause closes the windows of maps and of their nested maps, and resume opens them", async () => {
    const { run, first, second } = await nested();
    const running = await play.claim();
    await pauseAll(play, run, true);
    expect(await states(String(run), first, second)).toEqual(["paused", "paused", "paused"]);
    for (const item of running) await play.settle(item, { result: 1 });
    await play.keeper();
    expect(await play.claim()).toEqual([]);
    await pauseAll(play, run, false);
    expect(await states(String(run), first, second)).toEqual(["running", "running", "running"]);
    await play.drain();
    expect(await states(String(run), first, second)).toEqual(["succeeded", "succeeded", "succeeded"]);
  });

  test("a map that a running task creates in a paused run starts paused", async () => {
    play = await Play.open(types);
    const { run, task } = await runInHand(play);
    await pauseAll(play, run, true);
    const made = await map(play, task, "m", 3);
    const none = await map(play, task, "none", 0);
    await sleep(play, task, made.run);
    expect(await states(made.run, none.run)).toEqual(["paused", "succeeded"]);
    await play.keeper();
    expect(await play.claim()).toEqual([]);
    await pauseAll(play, run, false);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });

  test("pause lets the items of a map without a window continue", async () => {
    play = await Play.open(types);
    const { run, task } = await runInHand(play);
    const made = await map(play, task, "m", 3, { window: null });
    await sleep(play, task, made.run);
    await pauseAll(play, run, true);
    expect(await play.state(Number(made.run))).toBe("paused");
    expect((await play.claim()).length).toBe(3);
    await pauseAll(play, run, false);
    await play.drain();
  });

  test("pause of a map does not pause the run, and resume of the run resumes the map", async () => {
    const { run, first, second } = await nested();
    await pauseAll(play, first, true);
    expect(await states(String(run), first, second)).toEqual(["running", "paused", "paused"]);
    expect(await play.claim()).toEqual([]);
    await pauseAll(play, run, false);
    expect(await states(first, second)).toEqual(["running", "running"]);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });

  test("maps of a paused run continue when the run is cancelled and retried", async () => {
    play = await Play.open(types);
    expect(await observe(retriedWithPausedMap)).toEqual(wanted(retriedWithPausedMap));
  });

  test("a pause that another session has undone meanwhile pauses no further maps", async () => {
    const { run, first, second } = await nested();
    for (const paused of [true, false]) await play.db.value("select sluice.workflow_pause($1, $2)", [run, paused]);
    await follow(play.db, run);
    expect(await states(first, second)).toEqual(["running", "running"]);
    await play.drain();
  });

  test("pause reaches many maps in pieces, and skips finished ones", async () => {
    play = await Play.open(types);
    const { run, task } = await runInHand(play);
    for (let i = 0; i < 25; i++) await map(play, task, `m${i}`, i % 5 === 0 ? 0 : 1);
    const paused = (): Promise<number> =>
      play.db.value("select count(*)::int from sluice.workflow_run where paused and id <> $1", [run]);
    expect(await pauseAll(play, run, true, 4)).toBeGreaterThan(5);
    expect(await paused()).toBe(20);
    await pauseAll(play, run, false, 4);
    expect(await paused()).toBe(0);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });
});

describe("a cancel of a run and its maps", () => {
  const cancel = (run: number): Promise<string> => play.db.value("select sluice.workflow_cancel($1)", [run]);

  test("cancel closes the maps of sleeping tasks and their nested maps before it returns", async () => {
    play = await Play.open(types);
    expect(await observe(cancelledWithMaps)).toEqual(wanted(cancelledWithMaps));
  });

  test("cancel admits no item of a large map, and the rest is cancelled on request", async () => {
    const { run, first, second } = await nested(2_500);
    const running = await play.claim();
    expect(running.length).toBe(2);
    expect(await cancel(run)).toBe("cancelled");
    expect(await states(first, second)).toEqual(["cancelling", "cancelling"]);
    for (const item of running) await play.settle(item, "cancel");
    expect(await play.claim()).toEqual([]);
    while (await cancelMaps(play.db, run));
    expect(await states(first, second)).toEqual(["cancelled", "cancelled"]);
    expect(await play.counts(Number(first), "first")).toMatchObject({ cancelled: 2_500 });
    expect(await play.counts(Number(second), "second")).toMatchObject({ cancelled: 2_500 });
  });

  test("cancel leaves the map of a running task until the task ends", async () => {
    play = await Play.open(types);
    const { run, task } = await runInHand(play);
    const made = await map(play, task, "m", 3, { window: 1 });
    expect(await cancel(run)).toBe("asked");
    expect(await cancelMaps(play.db, run)).toBe(false);
    expect(await play.state(Number(made.run))).toBe("running");
    await play.settle(task, "cancel");
    expect(await cancelMaps(play.db, run)).toBe(false);
    expect(await play.state(Number(made.run))).toBe("cancelled");
    expect(await play.claim()).toEqual([]);
  });

  test("the cancel of maps changes nothing in a run that is not cancelled", async () => {
    const { run, first } = await nested();
    expect(await cancelMaps(play.db, run)).toBe(false);
    expect(await play.state(Number(first))).toBe("running");
    await play.drain();
  });

  test("cancel also cancels maps that a retry has not brought back yet", async () => {
    play = await Play.open(types);
    expect(await observe(cancelledBeforeMapsAreBack)).toEqual(wanted(cancelledBeforeMapsAreBack));
  });

  test("a retry after two cancels brings all items back", async () => {
    const { run, first } = await nested(1_200, 1_000);
    await cancel(run);
    while (await cancelMaps(play.db, run));
    await play.db.value("select sluice.workflow_retry($1)", [run]);
    expect(await play.state(Number(first))).toBe("running");
    await cancel(run);
    while (await cancelMaps(play.db, run));
    expect(await states(String(run), first)).toEqual(["cancelled", "cancelled"]);
    await play.db.value("select sluice.workflow_retry($1)", [run]);
    await play.drain();
    expect(await states(String(run), first)).toEqual(["succeeded", "succeeded"]);
  });
});

test("a settle of a run does not wait for a map that one of its tasks is creating", async () => {
  play = await Play.open(types);
  expect(await observe(settledBesideMaker)).toEqual(wanted(settledBesideMaker));
});
