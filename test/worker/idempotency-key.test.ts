import { afterAll, beforeAll, expect, test } from "vitest";
import { task, type, workflow } from "../../src/index.js";
import { openHouse, type House } from "../client/house.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const input = type<{ fails?: number }>();
const retry = { attempts: 2, backoff: () => 1 };

test("ctx.idempotencyKey is the same in every attempt and after a retry by hand", async () => {
  const keys: string[] = [];
  const flaky = task("flaky", { input, retry });
  const worker = await house.work([
    flaky.handle(({ fails = 0 }, ctx) => {
      if (keys.push(ctx.idempotencyKey) <= fails) throw new Error("again");
    }),
  ]);
  const handle = await house.sluice.enqueue(flaky, { fails: 3 });
  await expect(handle.result()).rejects.toMatchObject({ code: "task_failed" });
  expect(await house.sluice.retry(handle.id)).toBe(true);
  await handle.result();
  expect(keys).toHaveLength(4);
  expect(new Set(keys).size).toBe(1);
  await worker.stop();
});

test("ctx.idempotencyKey differs when an id is issued again after a restore", async () => {
  const keys = new Map<string, string[]>();
  const seen = task("seen", { input });
  const worker = await house.work([
    seen.handle((_, ctx) => void keys.set(ctx.id, [...(keys.get(ctx.id) ?? []), ctx.idempotencyKey])),
  ]);
  const play = async (): Promise<void> => {
    // A session that fixes the random numbers, as some do for their reports, changes nothing.
    await house.sql("select setseed(0.5)");
    const one = await house.sluice.enqueue(seen, {});
    const many = (await house.sluice.enqueueMany(seen, [{}, {}])).ids();
    const [sql] = await house.sql<{ id: string }>("select sluice.enqueue('seen', '{}')::text as id");
    for (const id of [one.id, ...many, sql!.id]) await house.sluice.task(id).result();
  };
  const [before] = await house.sql<{ n: string }>("select last_value::text as n from sluice.task_id");
  await play();
  // As if everything since then had been lost.
  await house.sql("delete from sluice.task where id > $1", [before!.n]);
  await house.sql("delete from sluice.done where id > $1", [before!.n]);
  await house.sql("select setval('sluice.task_id', $1)", [before!.n]);
  await play();
  expect([...keys.values()].map((k) => k.length)).toEqual([2, 2, 2, 2]);
  expect(new Set([...keys.values()].flat()).size).toBe(8);
  await worker.stop();
});

test("tasks of a workflow have idempotency keys of their own", async () => {
  const keys: string[] = [];
  const step = task("step", { input });
  const flow = workflow("flow", { input }, (w) => {
    const first = w.task("first", step, {});
    w.each("each", step, [1, 2], () => ({}), { after: [first], window: 2 });
  });
  const worker = await house.work([step.handle((_, ctx) => void keys.push(ctx.idempotencyKey))]);
  await (await house.sluice.start(flow, {})).result();
  expect(new Set(keys).size).toBe(3);
  for (const key of keys) expect(key).toMatch(/^\d+-\d{6,}$/);
  await worker.stop();
});
