import { afterEach, describe, expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import { mutate } from "../mutation.js";
import { Scene } from "../../support/sql.js";
import { map } from "./maps.js";
import {
  besideHeldRun,
  cancelledBeforeAllAreBack,
  ends,
  failedBeforeAllAreBack,
  further,
  halfDone,
  limitBesideHeldRun,
  live,
  retriedTwice,
  retriedWhileItsMapStops,
  retry,
  runRetriedTwice,
  settleAll,
  severalBesideLane,
  taskRetriedTwice,
  windowOutlivesRetry,
} from "./again.js";
import { Play } from "./play.js";

describe("a retry of 2,500 items", () => {
  let play: Play;
  afterEach(async () => {
    expect(await play.violations()).toEqual([]);
    await play.close();
  });

  test("retry brings items back in pieces, and the node does not end before all are back", async () => {
    play = await Play.open({ item: {} });
    const run = await halfDone(play);
    expect(await ends(play, run)).toEqual([1_497, 3, 1_000]);
    expect(await retry(play, run)).toBe(1);
    expect(await live(play, run)).toBe(1_000);
    await play.claim(1_000);
    await settleAll(play, "succeed");
    expect([await ends(play, run), await play.state(run)]).toEqual([[2_497, 0, 0], "running"]);
    expect(await play.violations()).toEqual([]);
    // A look passes over twenty times as many as it may bring back, and no more.
    const looks: string[] = [];
    for (let i = 0; i < 20 && looks.at(-1) !== "waits"; i++) looks.push(await further(play, run, 10));
    expect(looks).toEqual([...Array.from({ length: 7 }, () => "more"), "waits"]);
    expect(await live(play, run)).toBe(3);
    await play.drain((t) => ({ result: t.input }));
    expect([await ends(play, run), await play.state(run)]).toEqual([[2_500, 0, 0], "succeeded"]);
    expect(await further(play, run)).toBe("over");
  });

  test("retry brings no items back while the run is paused", async () => {
    play = await Play.open({ item: {} });
    const run = await halfDone(play);
    await retry(play, run);
    const pause = (on: boolean): Promise<boolean> => play.db.value("select sluice.workflow_pause($1, $2)", [run, on]);
    await pause(true);
    await play.keeper();
    expect([await further(play, run), await live(play, run)]).toEqual(["waits", 1_000]);
    await pause(false);
    await play.keeper();
    expect(await live(play, run)).toBe(1_003);
  });

  test("retry waits while a full piece of items is held back by their unfinished maps", async () => {
    const edits = [["piece", "2"]] as const;
    play = await Play.on(await Scene.open(mutate({ in: "workflow_retry", edits })), {
      parent: {},
      item: {},
    });
    const run = await play.run({
      all: ["each", { type: "parent", items: [1, 2, 3, 4], window: 4, onError: "finish" }],
    });
    const parents = await play.claim();
    for (const parent of parents.slice(0, 2)) await map(play, parent, "pages", 2);
    const items = await play.claim();
    for (const parent of parents) await play.settle(parent, { fail: "x" });
    await play.keeper();
    await play.keeper();
    await retry(play, run);
    // Their items still run and are aborted later: nothing can come back until then.
    expect(await further(play, run, 2)).toBe("waits");
    expect(await play.db.value("select moved from sluice.workflow_keep(2)")).toBe(0);
    for (const item of items) await play.settle(item, "cancel");
    expect([await further(play, run, 2), await further(play, run, 2)]).toEqual(["more", "waits"]);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });
});

test("a retry of a run that is locked blocks no change of a limit", async () => {
  expect(await observe(limitBesideHeldRun)).toEqual(wanted(limitBesideHeldRun));
});

test.each([
  ["a cancel", "select sluice.workflow_cancel($1)", false],
  ["the next piece of a cancel or retry", "select sluice.workflow_continue($1, 1000)", false],
  ["a retry of a task", "select sluice.retry($1)", true],
])("%s blocks no change of a limit while its run is locked", async (_, text, ofTask) => {
  const scene = await Scene.open();
  const seen = await besideHeldRun(scene, (db, run, task) => db.value(text, [ofTask ? task : run]));
  await scene.close();
  expect(seen).toEqual({ changed: "accepted", answer: "accepted" });
});

test("a keeper that brings back several runs locks all their windows in one order", async () => {
  expect(await observe(severalBesideLane)).toEqual(wanted(severalBesideLane));
});

test("a window that was set for a run still holds after a retry", async () => {
  expect(await observe(windowOutlivesRetry)).toEqual(wanted(windowOutlivesRetry));
});

test("a cancel during a retry ends the run with the outcomes of items that are not back", async () => {
  expect(await observe(cancelledBeforeAllAreBack)).toEqual(wanted(cancelledBeforeAllAreBack));
});

test("a failFast fan-out that fails again during a retry ends with the outcomes of items that are not back", async () => {
  expect(await observe(failedBeforeAllAreBack)).toEqual(wanted(failedBeforeAllAreBack));
});

test("a task that a retry of its run is bringing back is not brought back twice", async () => {
  expect(await observe(retriedTwice)).toEqual(wanted(retriedTwice));
});

test("a retried task comes back when the cancel of its map is complete, and not before", async () => {
  expect(await observe(retriedWhileItsMapStops)).toEqual(wanted(retriedWhileItsMapStops));
});

test("a repeated retry of a run with the same token returns the same answer, also when the run is paused", async () => {
  expect(await observe(runRetriedTwice)).toEqual(wanted(runRetriedTwice));
});

test("a repeated retry of a task with the same token returns the same answer while the first is in flight", async () => {
  expect(await observe(taskRetriedTwice)).toEqual(wanted(taskRetriedTwice));
});
