import { afterEach, describe, expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import { Play, ref, type Nodes } from "./play.js";
import { eventBehindNotes } from "./standing.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> => void (play = await Play.open({ a: {}, b: {} }));
const send = (run: number, name: string, payload: unknown): Promise<boolean> =>
  play.db.value("select sluice.workflow_send($1, $2, $3)", [run, name, JSON.stringify(payload)]);
const nextMs = (): Promise<string | null> => play.db.value("select next_ms from sluice.workflow_keep(100)");

describe("sleep", () => {
  test("sleep lasts as long as requested, and reports when the next one ends", async () => {
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
    ["tomorrow", "failed"],
    ["now", "failed"],
    ["2090-13-01", "failed"],
    ["1/2/2090", "failed"],
    ["infinity", "failed"],
    [null, "failed"],
    [{}, "failed"],
  ])("sleep until %j leaves the run %s", async (at, state) => {
    await open();
    const run = await play.run({ nap: ["sleep", { until: ref("input", "at") }] }, { at });
    expect(await play.state(run)).toBe(state);
  });

  test("sleep until an invalid time reports the value and the node", async () => {
    await open();
    const why = async (at: unknown): Promise<unknown> => {
      const run = await play.run({ nap: ["sleep", { until: ref("input", "at") }] }, { at });
      return (await play.errorOf(run, "nap"))?.["message"];
    };
    expect(await why(null)).toContain('node "nap" cannot sleep until null');
    expect(await why("tomorrow")).toContain('node "nap" cannot sleep until "tomorrow"');
  });

  // Far enough from now that no offset of the earth makes another answer of it.
  test.each(["America/Los_Angeles", "Pacific/Kiritimati", "UTC"])(
    "sleep until a time without an offset means UTC, also in a session in %s",
    async (zone) => {
      await open();
      await play.db.rows(`set timezone = '${zone}'`);
      await play.db.rows("set datestyle = 'SQL, DMY'");
      const dueAt = async (at: string): Promise<number> => {
        const run = await play.run({ nap: ["sleep", { until: ref("input", "at") }] }, { at });
        expect(await play.errorOf(run, "nap")).toBeNull();
        return play.db.value(
          "select (extract(epoch from due_at) * 1000)::float8 from sluice.workflow_timer where run = $1",
          [run],
        );
      };
      expect(await dueAt("2090-03-04T05:06:07.5")).toBe(Date.UTC(2090, 2, 4, 5, 6, 7, 500));
      expect(await dueAt("2090-03-04 05:06")).toBe(Date.UTC(2090, 2, 4, 5, 6));
      expect(await dueAt("2090-03-04")).toBe(Date.UTC(2090, 2, 4));
      expect(await dueAt("2090-03-04T05:06:07z")).toBe(Date.UTC(2090, 2, 4, 5, 6, 7));
      expect(await dueAt("2090-03-04T05:06+02:00")).toBe(Date.UTC(2090, 2, 4, 3, 6));
    },
  );

  test("sleep of 0 ms ends immediately", async () => {
    await open();
    expect(await play.state(await play.run({ nap: ["sleep", { ms: 0 }] }))).toBe("succeeded");
  });
});

describe("waitFor", () => {
  const nodes: Nodes = {
    first: ["task", { type: "a" }],
    approved: ["waitFor", { event: "ok", after: ["first"], timeoutMs: 60_000 }],
    next: ["task", { type: "b", after: ["approved"], input: ref("approved", "by") }],
  };

  test("a late event wakes its node with the payload", async () => {
    await open();
    const run = await play.run(nodes);
    await play.drain();
    expect(await play.nodes(run)).toMatchObject({ approved: "running" });
    expect(await send(run, "ok", { by: "ann" })).toBe(true);
    await play.drain();
    expect(play.started.at(-1)!.input).toBe("ann");
    expect(await play.state(run)).toBe("succeeded");
    expect(await send(run, "ok", 1)).toBe(false);
  });

  test("an event that arrives before its node is kept for it", async () => {
    await open();
    const run = await play.run(nodes);
    await send(run, "ok", { by: "early" });
    await play.drain();
    expect(play.started.at(-1)!.input).toBe("early");
  });

  test("an event sent in a transaction counts when the transaction commits", async () => {
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

  test("each node takes the oldest event of its name, in whatever order the events came", async () => {
    await open();
    const run = await play.run({
      a2: ["waitFor", { event: "a" }],
      b: ["waitFor", { event: "b" }],
      a1: ["waitFor", { event: "a", after: ["a2"] }],
    });
    for (const [name, payload] of [
      ["b", "b1"],
      ["a", "first"],
      ["b", "b2"],
      ["a", "second"],
      ["a", "third"],
    ] as const)
      await send(run, name, payload);
    await play.drain();
    expect(await play.result(run)).toEqual({ b: "b1", a1: "second" });
    expect(await play.db.value("select count(*)::int from sluice.workflow_event")).toBe(0);
  });

  test("events that no node waits for yet are not read when another arrives", async () => {
    await open();
    const nodes: Nodes = {
      one: ["waitFor", { event: "ok" }],
      two: ["waitFor", { event: "late" }],
      last: ["waitFor", { event: "other", after: ["two"] }],
    };
    const [run] = await play.start(await play.declare(nodes));
    await play.db.rows("select sluice.workflow_send($1, 'other', '1') from generate_series(1, 900)", [run]);
    await send(run!, "ok", 1);
    const rowsRead = (): Promise<number> =>
      play.db.value(
        "select sum(seq_tup_read + idx_tup_fetch)::int from pg_stat_xact_user_tables where schemaname = 'sluice' and relname like 'workflow\\_%'",
      );
    await play.db.begin();
    const before = await rowsRead();
    await play.db.rows("select made from sluice.workflow_deliver_events($1)", [[run]]);
    const read = (await rowsRead()) - before;
    await play.db.commit();
    expect(read).toBeLessThan(100);
    expect(await play.nodes(run!)).toEqual({ one: "succeeded", two: "running", last: "pending" });
  });

  test("a run accepts 1,000 events that no node has taken, and then no more", async () => {
    await open();
    const nodes: Nodes = {
      one: ["waitFor", { event: "ok" }],
      two: ["waitFor", { event: "late" }],
      last: ["waitFor", { event: "x", after: ["two"] }],
    };
    const [run, other] = await play.start(await play.declare(nodes), 1, 2);
    await play.db.rows("select sluice.workflow_send($1, 'x', '1') from generate_series(1, 999)", [run]);
    expect(await send(run!, "ok", 1)).toBe(true);
    await expect(send(run!, "ok", 1)).rejects.toMatchObject({ constraint: "too_many_events" });
    expect(await send(other!, "ok", 1)).toBe(true);
    // Once a node has taken one there is room again.
    await play.drain();
    expect(await send(run!, "late", 1)).toBe(true);
    await play.drain();
    expect(await play.state(run!)).toBe("succeeded");
  });

  test("an event that no node of the graph waits for is refused, and the error names the run's events", async () => {
    await open();
    const run = await play.run({
      one: ["waitFor", { event: "ok" }],
      two: ["waitFor", { event: "ok" }],
      last: ["waitFor", { event: "late", after: ["two"] }],
    });
    await expect(send(run, "okay", 1)).rejects.toMatchObject({
      constraint: "unknown_event",
      message: `run ${run} has no node that waits for event "okay": its events are "ok", "late"`,
    });
    expect(await send(run, "late", 1)).toBe(true);
    const none = await play.run({ first: ["task", { type: "a" }] });
    await expect(send(none, "ok", 1)).rejects.toMatchObject({
      constraint: "unknown_event",
      message: expect.stringContaining("it has none"),
    });
    expect(await play.db.value("select count(*)::int from sluice.workflow_event")).toBe(1);
    await play.db.rows("select sluice.workflow_cancel(id) from sluice.workflow_run");
    expect(await send(none, "ok", 1)).toBe(false);
  });

  test("an event for a run of another workflow is refused", async () => {
    await open();
    const run = await play.run({ one: ["waitFor", { event: "ok" }] });
    const name = await play.db.value<string>("select name from sluice.workflow_graph");
    const sent = (workflow: string): Promise<boolean> =>
      play.db.value("select sluice.workflow_send($1, 'ok', '1', $2)", [run, workflow]);
    await expect(sent("another")).rejects.toMatchObject({
      constraint: "invalid_option",
      message: `run ${run} belongs to workflow "${name}", not to workflow "another"`,
    });
    expect(await sent(name)).toBe(true);
  });

  test("workflow_send in SQL refuses an invalid name, and needs no payload", async () => {
    await open();
    const run = await play.run({ one: ["waitFor", { event: "ok" }] });
    for (const name of [null, "", "x".repeat(129)])
      await expect(send(run, name as string, 1)).rejects.toMatchObject({
        constraint: "invalid_name",
      });
    await play.db.value("select sluice.workflow_send($1, 'ok', null)", [run]);
    await play.drain();
    expect(await play.result(run)).toEqual({ one: null });
  });

  test("a node without its event fails when its timeout is over", async () => {
    await open();
    const run = await play.run(nodes);
    await play.drain();
    await play.scene.moveClock(60_001);
    await play.keeper();
    expect(await play.errorOf(run, "approved")).toMatchObject({ code: "timeout" });
    expect(await play.state(run)).toBe("failed");
  });
  test("an event that was sent in time wins over its timeout, however many notes are ahead of it", async () => {
    await open();
    expect(await observe(eventBehindNotes)).toEqual(wanted(eventBehindNotes));
  });
});
