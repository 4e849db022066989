import { afterEach, describe, expect, test } from "vitest";
import { Play, ref, type Nodes } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> => void (play = await Play.open({ a: {}, b: {} }));
const send = (run: number, name: string, payload: unknown): Promise<boolean> =>
  play.db.value("select sluice.workflow_send($1, $2, $3)", [run, name, JSON.stringify(payload)]);
const nextMs = (): Promise<string | null> =>
  play.db.value("select next_ms from sluice.workflow_keep(100)");

describe("sleep", () => {
  test("lasts as long as it was told to, and says when the next is over", async () => {
    await open();
    const run = await play.run({
      nap: ["sleep", { ms: 60_000 }],
      next: ["task", { type: "a", after: ["nap"] }],
    });
    await play.drain();
    expect(play.started).toEqual([]);
    expect(Number(await nextMs())).toBeGreaterThan(50_000);
    await play.scene.moveClock(60_001);
    play.worker = await play.db.register(play.worker.streams);
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
    expect(play.started.length).toBe(1);
  });

  test.each([
    ["2020-01-01T00:00:00Z", "succeeded"],
    [1_600_000_000_000, "succeeded"],
    ["2090-01-01T00:00:00Z", "running"],
    ["tomorrowish", "failed"],
    ["infinity", "failed"],
    [null, "failed"],
    [{}, "failed"],
  ])("until %j: %s", async (at, state) => {
    await open();
    const run = await play.run({ nap: ["sleep", { until: ref("input", "at") }] }, { at });
    expect(await play.state(run)).toBe(state);
  });

  test("of no time is over at once", async () => {
    await open();
    expect(await play.state(await play.run({ nap: ["sleep", { ms: 0 }] }))).toBe("succeeded");
  });
});

describe("waitFor", () => {
  const nodes: Nodes = {
    first: ["task", { type: "a" }],
    approved: ["waitFor", { event: "ok", after: ["first"], timeoutMs: 1_000 }],
    next: ["task", { type: "b", after: ["approved"], input: ref("approved", "by") }],
  };

  test("an event that comes late wakes the node with its payload", async () => {
    await open();
    const run = await play.run(nodes);
    await play.drain();
    expect(await play.nodes(run)).toMatchObject({ approved: "running" });
    expect(await send(run, "other", 1)).toBe(true);
    expect(await send(run, "ok", { by: "ann" })).toBe(true);
    await play.drain();
    expect(play.started.at(-1)!.input).toBe("ann");
    expect(await play.state(run)).toBe("succeeded");
    expect(await send(run, "ok", 1)).toBe(false);
  });

  test("an event that comes before its node is kept for it", async () => {
    await open();
    const run = await play.run(nodes);
    await send(run, "ok", { by: "early" });
    await play.drain();
    expect(play.started.at(-1)!.input).toBe("early");
  });

  test("an event sent in a transaction counts when it commits", async () => {
    await open();
    const run = await play.run(nodes);
    await play.drain();
    const [other] = await play.scene.sessions(1);
    await other.begin();
    await other.value("select sluice.workflow_send($1, 'ok', '{}')", [run]);
    await play.drain();
    expect(await play.nodes(run)).toMatchObject({ approved: "running" });
    await other.commit();
    await play.drain();
    expect(await play.state(run)).toBe("succeeded");
  });

  test("two nodes that wait for one name take one event each", async () => {
    await open();
    const run = await play.run({
      one: ["waitFor", { event: "ok" }],
      two: ["waitFor", { event: "ok" }],
    });
    await send(run, "ok", 1);
    await play.drain();
    expect(await play.nodes(run)).toEqual({ one: "succeeded", two: "running" });
    await send(run, "ok", 2);
    await play.drain();
    expect(await play.result(run)).toEqual({ one: 1, two: 2 });
  });

  test("without its event it fails when its time is over", async () => {
    await open();
    const run = await play.run(nodes);
    await play.drain();
    await play.scene.moveClock(1_001);
    await play.keeper();
    expect(await play.errorOf(run, "approved")).toMatchObject({ code: "timeout" });
    expect(await play.state(run)).toBe("failed");
  });
});
