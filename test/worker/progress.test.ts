import { afterEach, beforeEach, expect, test } from "vitest";
import { task, type } from "../../src/index.js";
import { openHouse, type House } from "../client/house.js";
import { progressOfALostClaim } from "../postgres/schedules/fence.js";
import { observe, wanted } from "../postgres/schedules/schedule.js";
import { signal } from "../flow/scene.js";

const load = task("load", { input: type<number>(), output: type<string>() });
let house: House;
beforeEach(async () => void (house = await openHouse()));
afterEach(() => house.close());

test("status returns the latest progress of a running task, and keeps it when the task has ended", async () => {
  const end = signal();
  await house.work([
    load.handle(async (_, ctx) => {
      ctx.progress(0.1, { step: "first" });
      ctx.progress(0.5, { step: "second" });
      await end.promise;
      return "loaded";
    }),
  ]);
  const handle = await house.sluice.enqueue(load, 1);
  await expect.poll(async () => (await handle.status())!.progress, { timeout: 20_000 }).not.toBeNull();
  expect((await handle.status())!.progress).toEqual({
    fraction: 0.5,
    data: { step: "second" },
    at: expect.any(Date) as Date,
  });
  end.resolve();
  await handle.result({ timeoutMs: 20_000 });
  expect((await handle.status())!.progress).toMatchObject({ fraction: 0.5 });
});

test("a worker stores what many handlers report in few statements", async () => {
  const end = signal();
  const started = signal();
  let n = 0;
  await house.work([
    load.handle(async (_, ctx) => {
      if (++n === 20) started.resolve();
      const until = Date.now() + 1_500;
      while (Date.now() < until) {
        ctx.progress(Math.random());
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await end.promise;
      return "loaded";
    }),
  ]);
  await house.sql("create table calls (n int)");
  await house.sql(`create function note() returns trigger language plpgsql as
    $$ begin insert into calls values (1); return null; end $$`);
  await house.sql(`create trigger note after insert or update on sluice.progress
    for each statement execute function note()`);
  const many = await house.sluice.enqueueMany(
    load,
    Array.from({ length: 20 }, (_, i) => i),
  );
  await started.promise;
  const all = `select count(*)::int as n from sluice.progress`;
  await expect.poll(async () => (await house.sql<{ n: number }>(all))[0]!.n, { timeout: 20_000 }).toBe(20);
  end.resolve();
  for (const id of many.ids()) await house.sluice.task(id).result({ timeoutMs: 20_000 });
  // An insert with ON CONFLICT DO UPDATE fires both triggers: two rows per statement.
  const [row] = await house.sql<{ calls: number }>("select count(*)::int as calls from calls");
  expect(row!.calls).toBeLessThan(40);
});

test.each([-0.1, 1.1, Number.NaN, "half"])("ctx.progress refuses %s", async (fraction) => {
  const seen = signal<unknown>();
  await house.work([
    load.handle((_, ctx) => {
      try {
        ctx.progress(fraction as number);
      } catch (e) {
        seen.resolve(e);
      }
      return "loaded";
    }),
  ]);
  await house.sluice.enqueue(load, 1);
  expect(await seen.promise).toMatchObject({ code: "invalid_option" });
});

test("an execution that lost its task does not overwrite its progress", async () => {
  expect(await observe(progressOfALostClaim)).toEqual(wanted(progressOfALostClaim));
});
