import { expect, test } from "vitest";
import { idsOf, Scene } from "../support/sql.js";
import { otherTotals } from "./schedules/numbers.js";
import { observe, wanted, type Schedule } from "./schedules/schedule.js";
import { headsInHand, headsInHandOfASavepoint, newKey, rivalInHand, sharedTotal } from "./schedules/turns.js";

const ascending = (x: number, y: number): number => x - y;

const holds = async (s: Schedule): Promise<void> => expect(await observe(s)).toEqual(wanted(s));

test.each(["limit", "order"] as const)("a new key waits for at most one round of the others: %s", (kind) =>
  holds(newKey(kind)),
);

test("heads locked by an open transaction cost no other type its turn", () => holds(headsInHand));

test("heads locked by an open savepoint cost no other type its turn", () => holds(headsInHandOfASavepoint));

test("a slot is not left idle for another worker's task that an open transaction has locked", () => holds(rivalInHand));

test("slots of several totals are reused only if all of them were freed", () => holds(otherTotals));

test.each(["set", "concurrency"] as const)(
  "a slot of a shared total goes to the first task, whatever else the task needs: %s",
  (kind) => holds(sharedTotal(kind)),
);

test("a task passes its limits per key in the order of the limits, whatever its keys", async () => {
  const scene = await Scene.open();
  try {
    const [a] = await scene.sessions(1);
    const limits = [await a.limit("tenant", { perKey: 1 }), await a.limit("account", { perKey: 1 })];
    const stream = await a.type("t", { limits });
    for (let i = 0; i < 20; i++) await a.enqueue(stream, { limits, keys: [`t${i}`, `a${i}`] });
    const orders = await a.value("select json_agg(distinct lane_limits::text) from sluice.task");
    expect(orders).toEqual([`{${limits.join(",")}}`]);
  } finally {
    await scene.close();
  }
});

test("a worker of thousands of types claims from the few with tasks, from every one in turn", async () => {
  const scene = await Scene.open();
  try {
    const [a] = await scene.sessions(1);
    await a.value("select count(sluice.declare_stream('default', 'type-' || n)) from generate_series(1, 2000) n");
    const streams = Array.from({ length: 2000 }, (_, i) => i + 1);
    const worker = await a.register(streams);
    for (const stream of [7, 1500, 1999]) await a.enqueue(stream);
    expect(idsOf(await a.claim(worker, 10))).toEqual([1, 2, 3]);
    // With 40 types a claim looks up which have tasks; with 100 it examines 16 per claim, one after the other.
    for (const busy of [40, 100]) {
      const some = streams.slice(0, busy);
      for (const stream of some) await a.enqueue(stream);
      const began = await a.rows<{ stream: number }>("select stream from sluice.step($1, $2, $3, 50, p_from => 11)", [
        worker.id,
        busy,
        streams,
      ]);
      expect(began.map(({ stream }) => stream).toSorted(ascending)).toEqual(some.slice(10, 26));
      const rest: number[] = [];
      for (let held = await a.claim(worker, 50); held.length > 0;) {
        rest.push(...held.map(({ stream }) => stream));
        held = await a.claim(worker, 50);
      }
      expect(rest).toEqual([...some.slice(0, 10), ...some.slice(26)]);
    }
  } finally {
    await scene.close();
  }
});
