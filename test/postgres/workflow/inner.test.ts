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

describe("a pause of a run", () => {
  test("shuts the windows of what its tasks have fanned out, and of what their items have; a resume opens them", async () => {
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

  test("is there from the beginning for what a task makes that was running", async () => {
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

  test("lets the items of a map without a window go on: they had passed already", async () => {
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

  test("of a map alone leaves the run outside alone, and a resume outside resumes it too", async () => {
    const { run, first, second } = await nested();
    await pauseAll(play, first, true);
    expect(await states(String(run), first, second)).toEqual(["running", "paused", "paused"]);
    expect(await play.claim()).toEqual([]);
    await pauseAll(play, run, false);
    expect(await states(first, second)).toEqual(["running", "running"]);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });

  test("what a paused run's task had fanned out goes on when the run is cancelled and retried", async () => {
    play = await Play.open(types);
    expect(await observe(retriedWithPausedMap)).toEqual(wanted(retriedWithPausedMap));
  });

  test("that another has taken back meanwhile pauses nothing more", async () => {
    const { run, first, second } = await nested();
    for (const paused of [true, false]) await play.db.value("select sluice.workflow_pause($1, $2)", [run, paused]);
    await follow(play.db, run);
    expect(await states(first, second)).toEqual(["running", "running"]);
    await play.drain();
  });

  test("reaches many in pieces, and looks at none that is over", async () => {
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

describe("a cancel of a run", () => {
  const cancel = (run: number): Promise<string> => play.db.value("select sluice.workflow_cancel($1)", [run]);

  test("shuts what its sleeping tasks have fanned out before it returns, and what the items of that have", async () => {
    play = await Play.open(types);
    expect(await observe(cancelledWithMaps)).toEqual(wanted(cancelledWithMaps));
  });

  test("lets nothing of more than a piece pass, and the rest of it is cancelled on request", async () => {
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

  test("leaves what a task has made that runs, until the task ends", async () => {
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

  test("that is not cancelled cancels nothing", async () => {
    const { run, first } = await nested();
    expect(await cancelMaps(play.db, run)).toBe(false);
    expect(await play.state(Number(first))).toBe("running");
    await play.drain();
  });

  test("takes with it what a retry has not brought back yet of what its tasks have fanned out", async () => {
    play = await Play.open(types);
    expect(await observe(cancelledBeforeMapsAreBack)).toEqual(wanted(cancelledBeforeMapsAreBack));
  });

  test("twice, and a retry after that, brings back all", async () => {
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

test("a settle of a run does not wait for a map that one of its tasks is making", async () => {
  play = await Play.open(types);
  expect(await observe(settledBesideMaker)).toEqual(wanted(settledBesideMaker));
});
