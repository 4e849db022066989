import { afterEach, expect, test } from "vitest";
import { Play, ref, type InHand, type Nodes } from "../postgres/workflow/play.js";

// Checks what the workflows page says about windows, pauses and retries against the engine itself.
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

/** Postpones the next attempt by a backoff or a snooze. */
async function putOff(task: InHand, kind: string, ms: number): Promise<void> {
  const { worker, db } = play;
  const about = [worker.id, [task.id], [task.token], [kind], [ms], '{"message":"later"}'];
  await db.value("select sluice.settle($1, $2, $3, $4, $5, $6)::text", about);
  play.hand = play.hand.filter(({ id }) => id !== task.id);
}

test.each(["retry", "snooze"])(
  "an item that waits for its next attempt (%s) frees its place in the window",
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

test("sleeps, timeouts and events complete while a run is paused, and later nodes are held", async () => {
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

test("a paused run still starts a task without a window that was already ready", async () => {
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

test("retry of a run with a failed recovering branch reruns the node, and the branch only if the node fails again", async () => {
  await open();
  const run = await play.run(caught);
  const failing = ({ type }: InHand) => (type === "tidy" ? { result: 1 } : { fail: "no" });
  await play.drain(failing);
  expect(begun().toSorted()).toEqual(["tidy", "undo", "work"]);
  expect(await play.state(run)).toBe("failed");
  // A node that depends only on the end of the rerun node also runs again, although it had succeeded.
  await retry(run);
  await play.drain(failing);
  expect(begun().toSorted()).toEqual(["tidy", "undo", "work"]);
  await retry(run);
  await play.drain();
  expect(begun().toSorted()).toEqual(["tidy", "work"]);
  expect(await play.nodes(run)).toEqual({ first: "succeeded", undo: "skipped", tidy: "succeeded" });
});

test("retry does not rerun a failed node whose branch recovered", async () => {
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
