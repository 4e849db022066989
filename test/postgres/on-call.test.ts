import { expect, onTestFinished, test } from "vitest";
import { Scene } from "../support/sql.js";
import { onCall, onCallMax, reliefOfTheBusy, ringBesideReserve, sleepers } from "./schedules/on-call.js";
import { observe, wanted } from "./schedules/schedule.js";

async function open(): Promise<Scene> {
  const scene = await Scene.open();
  onTestFinished(() => scene.close());
  return scene;
}

test("a ring reaches a worker that is on call, however many workers are in reserve", async () => {
  expect(await observe(ringBesideReserve)).toEqual(wanted(ringBesideReserve));
});

test("a worker in reserve relieves one with tasks in flight, and no idle one", async () => {
  expect(await observe(reliefOfTheBusy)).toEqual(wanted(reliefOfTheBusy));
});

test("a worker in reserve relieves one that cannot claim", async () => {
  const [a] = await (await open()).sessions(1);
  const workers = await sleepers(a, await a.type("t"), (await onCallMax(a)) + 1);
  await a.rows("update sluice.worker set on_call_since = on_call_since - interval '2 seconds'");
  const ask = (): Promise<boolean> => a.value("select on_call from sluice.go_on_call($1)", [workers.at(-1)!.id]);
  expect(await ask()).toBe(false);
  await a.beat(workers[0]!, 0);
  expect(await ask()).toBe(true);
});

test("each kind of worker has its own places on call", async () => {
  const [a] = await (await open()).sessions(1);
  const max = await onCallMax(a);
  await sleepers(a, await a.type("t"), max + 5);
  expect(await onCall(a)).toBe(max);
  await sleepers(a, await a.type("u"), 2);
  expect(await onCall(a)).toBe(max + 2);
});

test("the place of a worker whose lease has ended goes to the next that asks", async () => {
  const [a] = await (await open()).sessions(1);
  const stream = await a.type("t");
  const [dead, ...others] = await sleepers(a, stream, (await onCallMax(a)) + 1);
  const last = others.at(-1)!;
  const ask = (): Promise<boolean> => a.value("select on_call from sluice.go_on_call($1)", [last.id]);
  expect(await ask()).toBe(false);
  await a.rows("update sluice.worker set expires_at = '-infinity' where id = $1", [dead!.id]);
  expect(await ask()).toBe(true);
});

test("a worker that cannot listen is never on call", async () => {
  const [a] = await (await open()).sessions(1);
  await a.rows("select sluice.register('deaf', $1, 60000, 1, p_listens => false)", [[await a.type("t")]]);
  expect(await onCall(a)).toBe(0);
});
