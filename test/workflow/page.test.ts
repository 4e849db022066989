import { afterEach, expect, test } from "vitest";
import { Play, ref, type InHand, type Nodes } from "../postgres/workflow/play.js";

// What the page of workflows says of windows, pauses and retries, asked of the engine itself.
let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> => void (play = await Play.open({ work: {}, undo: {}, tidy: {} }));
const pause = (run: number, paused: boolean): Promise<boolean> =>
  play.db.value("select sluice.workflow_pause($1, $2)", [run, paused]);
const begun = (): string[] => play.started.splice(0).map(({ type }) => type);

async function wait(ms: number): Promise<void> {
  await play.scene.moveClock(ms);
  play.worker = await play.db.register(play.worker.streams);
  await play.drain();
}

/** Its next try is later: a backoff or a snooze. */
async function putOff(task: InHand, kind: string, ms: number): Promise<void> {
  const { worker, db } = play;
  const about = [worker.id, [task.id], [task.token], [kind], [ms], '{"message":"later"}'];
  await db.value("select sluice.settle($1, $2, $3, $4, $5, $6)::text", about);
  play.hand = play.hand.filter(({ id }) => id !== task.id);
}

test.each(["retry", "snooze"])(
  "an item that waits for its next try (%s) has given its place in the window to the next",
  async (kind) => {
    await open();
    const run = await play.run({
      all: ["each", { type: "work", items: [1, 2, 3], window: 1, input: ref("item") }],
    });
    const [first] = await play.claim();
    await putOff(first!, kind, 60_000);
    const claimed = await play.claim();
    expect(claimed.map(({ input }) => input)).toEqual([2]);
    await wait(60_001);
    expect(play.peak.get("work")).toBe(1);
    expect(await play.state(run)).toBe("succeeded");
  },
);

test("sleeps, timeouts and events go on while a run is paused, and what comes after them is held", async () => {
  await open();
  const run = await play.run({
    nap: ["sleep", { ms: 1_000 }],
    late: ["waitFor", { event: "late", timeoutMs: 1_000 }],
    heard: ["waitFor", { event: "ok" }],
    next: ["task", { type: "work", after: ["nap"] }],
    last: ["task", { type: "work", after: ["heard"] }],
  });
  await pause(run, true);
  await play.db.value("select sluice.workflow_send($1, 'ok', '1')", [run]);
  await wait(1_001);
  expect(await play.nodes(run)).toEqual({
    nap: "succeeded",
    late: "failed",
    heard: "succeeded",
    next: "held",
    last: "held",
  });
  expect(begun()).toEqual([]);
});

test("a paused run still begins a task that has no window and was ready before", async () => {
  await open();
  const run = await play.run({
    one: ["task", { type: "work" }],
    all: ["each", { type: "undo", items: [1, 2], window: 1 }],
  });
  await pause(run, true);
  await play.drain();
  expect(begun()).toEqual(["work"]);
  await pause(run, false);
  await play.drain();
  expect(begun()).toEqual(["undo", "undo"]);
});

const caught: Nodes = {
  first: ["task", { type: "work" }],
  undo: ["task", { type: "undo", after: [{ node: "first", on: "failure", recovers: true }] }],
  tidy: ["task", { type: "tidy", after: [{ node: "first", on: "end" }] }],
};
const retry = (run: number): Promise<number> => play.db.value("select sluice.workflow_retry($1)", [run]);

test("a retry of a run whose recovering branch failed runs the node again, and the branch only if that fails again", async () => {
  await open();
  const run = await play.run(caught);
  const failing = ({ type }: InHand) => (type === "tidy" ? { result: 1 } : { fail: "no" });
  await play.drain(failing);
  expect(begun().toSorted()).toEqual(["tidy", "undo", "work"]);
  expect(await play.state(run)).toBe("failed");
  // What only asked for the end of the node comes after it again, although it had succeeded.
  await retry(run);
  await play.drain(failing);
  expect(begun().toSorted()).toEqual(["tidy", "undo", "work"]);
  await retry(run);
  await play.drain();
  expect(begun().toSorted()).toEqual(["tidy", "work"]);
  expect(await play.nodes(run)).toEqual({ first: "succeeded", undo: "skipped", tidy: "succeeded" });
});

test("a failure that its branch has caught is not run again by a retry", async () => {
  await open();
  const run = await play.run({ ...caught, other: ["task", { type: "tidy" }] });
  let tidied = 0;
  await play.drain(({ type }) =>
    type === "work" || (type === "tidy" && tidied++ === 0) ? { fail: "no" } : { result: 1 },
  );
  expect(await play.state(run)).toBe("failed");
  begun();
  expect(await retry(run)).toBe(1);
  await play.drain();
  expect(begun()).toEqual(["tidy"]);
  expect(await play.state(run)).toBe("succeeded");
});
