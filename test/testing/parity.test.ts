import { expect, test } from "vitest";
import { cancel, fixed, limit, snooze, task, type } from "../../src/index.js";
import type { TestSluice } from "../../src/testing/index.js";
import { kit } from "./kit.js";

const tenant = limit("tenant", { perKey: 2 });
const total = limit("total", { total: 3 });

/** Contracts whose handlers do, by their input, everything that a handler can do. */
function cast() {
  const child = task("child", { input: type<number>() });
  const act = task("act", {
    input: type<number>(),
    order: { key: (n) => `key-${n % 4}`, onFailure: "block" },
    limits: [{ limit: tenant, key: (n) => `tenant-${n % 3}` }, total],
    retry: { attempts: 2, backoff: fixed(0) },
  });
  const handlers = [
    child.handle((n) => n),
    act.handle(async (n, ctx) => {
      if (n % 7 === 1 && ctx.attempt === 1) throw new Error(`first of ${n}`);
      if (n === 14) throw new Error("always");
      if (n % 7 === 2) throw cancel(`${n} is not wanted`);
      if (n % 7 === 3) return ctx.transaction(async () => ({ n }));
      if (n % 7 === 4) await ctx.enqueue(child, n, { priority: n });
      if (n % 7 === 5) throw n === 5 ? snooze(3_600_000) : new Error("x".repeat(n));
      return n;
    }),
  ];
  return { act, child, handlers };
}

/** The database state of every task, without ids of runs and times. */
async function record(t: TestSluice, { act, child }: ReturnType<typeof cast>): Promise<unknown[]> {
  const tasks = [...(await t.enqueued(act)), ...(await t.enqueued(child))];
  const rows = await Promise.all(
    tasks.map(async ({ id, input, runAt, limits, ...rest }) => {
      const status = await t.sluice.task(id).status();
      const outcome = status?.outcome as { message?: string } | null;
      return { input, limits, ...rest, runAt, outcome: outcome?.message ?? outcome };
    }),
  );
  return rows.toSorted((a, b) => a.input - b.input || a.priority - b.priority);
}

const inputs = Array.from({ length: 30 }, (_, n) => n);
const now = new Date("2031-01-01T00:00:00Z");

test("a drain leaves the same database state as a worker", async () => {
  const [drained, worked] = [cast(), cast()];
  const a = await kit({ handlers: drained.handlers, now });
  const b = await kit({ now, listen: true });
  await a.sluice.enqueueMany(drained.act, inputs);
  await b.sluice.enqueueMany(worked.act, inputs);
  await a.drain();
  const worker = b.sluice.worker({ handlers: worked.handlers, pollIntervalMs: 20 });
  await worker.start();
  const wanted = await a.sluice.counts();
  await expect.poll(() => b.sluice.counts(), { timeout: 20_000 }).toEqual(wanted);
  await worker.stop();
  expect(await record(b, worked)).toEqual(await record(a, drained));
  // The state includes every kind of outcome.
  expect(wanted).toMatchObject({ scheduled: 1, running: 0, ready: 0 });
  for (const state of ["waiting", "succeeded", "failed", "cancelled"] as const)
    expect(wanted[state], state).toBeGreaterThan(0);
});
