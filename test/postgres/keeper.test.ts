import { expect, onTestFinished, test } from "vitest";
import { Scene } from "../support/sql.js";
import { dueBeforeTheLook, earlyLook, look } from "./schedules/keeper.js";
import { observe, wanted } from "./schedules/schedule.js";

/** Its clock stands still: leases and promises are of a second or two, which a busy machine may take for a step. */
async function open(): Promise<Scene> {
  const scene = await Scene.open();
  onTestFinished(() => scene.close());
  await scene.stopClock();
  return scene;
}

test("an early check does not postpone the check that the leader has promised", async () => {
  expect(await observe(earlyLook)).toEqual(wanted(earlyLook));
});

test("only a task that is due before the leader's next check notifies the leader", async () => {
  expect(await observe(dueBeforeTheLook)).toEqual(wanted(dueBeforeTheLook));
});

test("one keeper leads until it leaves, and then another leads", async () => {
  const [a, b] = await (await open()).sessions(2);
  expect((await look(a, 1)).leads).toBe(true);
  expect((await look(b, 2)).leads).toBe(false);
  expect((await look(a, 1)).leads).toBe(true);
  const heard = await b.ear();
  await a.rows("select sluice.keep_leave(1)");
  expect(await heard()).toEqual(["keep:all"]);
  expect((await look(b, 2)).leads).toBe(true);
  expect((await look(a, 1)).leads).toBe(false);
});

test("one of two keepers that find no leader at the same time leads", async () => {
  const [a, b] = await (await open()).sessions(2);
  await a.begin();
  expect((await look(a, 1)).leads).toBe(true);
  const other = look(b, 2);
  await a.commit();
  expect((await other).leads).toBe(false);
});

test("a leader that does not check in time is replaced, also after the clock was set back", async () => {
  const scene = await open();
  const [a, b] = await scene.sessions(2);
  await look(a, 1);
  await scene.stopClock(2_000);
  expect((await look(b, 2)).leads).toBe(false);
  await scene.stopClock(4_000);
  expect((await look(b, 2)).leads).toBe(true);
  await scene.stopClock(-300_000);
  expect((await look(a, 1)).leads).toBe(true);
});

test("all keepers wake when a lease ends, and the leader when a task is due", async () => {
  const [a, b] = await (await open()).sessions(2);
  const stream = await a.type("t");
  await look(a, 1);
  await a.rows("select from sluice.enqueue_many($1, 0, 1, '1', p_delay_ms => 1500)", [stream]);
  expect((await look(a, 1)).next_ms).toBe(1_500);
  expect((await look(b, 2)).next_ms).toBe(2_500);
  await a.rows("select sluice.register('w', $1, 700, 1)", [[stream]]);
  expect((await look(a, 1)).next_ms).toBe(700);
  expect((await look(b, 2)).next_ms).toBe(700);
});

test("a worker that finds work notifies a leader that found none", async () => {
  const [a, b, c] = await (await open()).sessions(3);
  const stream = await a.type("t");
  const heard = await c.ear();
  await look(a, 1);
  await look(b, 2);
  expect(await heard()).toEqual([]);
  await a.enqueue(stream, { n: 1 });
  await look(b, 2);
  expect(await heard()).toEqual(["keep:1"]);
  // From now on the leader looks often enough.
  await look(a, 1);
  await look(b, 2);
  expect(await heard()).toEqual([]);
});
