import { expect, test } from "vitest";
import { task, type } from "../../src/index.js";
import { issueClaim } from "../../src/core/claim.js";
import { Outbox } from "../../src/worker/outbox.js";
import { Session } from "../../src/worker/session.js";
import { scene, signal, until } from "../flow/scene.js";

const FORGETFUL = { history: { succeededMs: 0, failedMs: 0, cancelledMs: 0 } };

test("a result is delivered to a waiting caller, and kept with the history", async () => {
  const s = await scene();
  const job = task("job", { input: type<unknown>(), output: type<unknown>() });
  await s.worker({ handlers: [job.handle((value) => value)] });
  for (const value of [{ a: [1, "\u2028", null] }, "text", 0, false, null]) {
    const handle = await s.sluice.enqueue(job, value);
    expect(await handle.result({ timeoutMs: 10_000 })).toEqual(value);
    expect(await s.sluice.task(handle.id).result()).toEqual(value);
  }
});

test("a result that cannot be stored becomes a description", async () => {
  const s = await scene({ resultBytesMax: 2_000 });
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const results: Record<string, unknown> = {
    circular,
    big: 12n,
    nul: "a\0b",
    large: "x".repeat(5_000),
    nothing: undefined,
  };
  const job = task("job", { input: type<string>() });
  await s.worker({ handlers: [job.handle((name) => results[name])] });
  const result = async (name: string): Promise<unknown> =>
    (await s.sluice.enqueue(job, name)).result({ timeoutMs: 10_000 });
  expect(await result("circular")).toEqual({ self: "[circular]" });
  expect(await result("big")).toBe("12");
  expect(await result("nul")).toBe("a\ufffdb");
  expect(await result("large")).toMatchObject({ truncated: true, bytes: 5_002 });
  expect(await result("nothing")).toBeNull();
});

test("a result without history is delivered to a waiting caller, and not kept otherwise", async () => {
  const s = await scene(FORGETFUL);
  const finish = signal();
  const job = task("job", { input: type<"waited for" | "alone">() });
  let runs = 0;
  await s.worker({
    handlers: [
      job.handle(async (input) => {
        runs++;
        if (input === "waited for") await finish.promise;
        return input;
      }),
    ],
  });
  const waited = await s.sluice.enqueue(job, "waited for");
  const [one, two] = [waited.result({ timeoutMs: 10_000 }), s.sluice.task(waited.id).result({ timeoutMs: 10_000 })];
  await until("both to be known to wait", async () => {
    const { rows } = await s.sql.query("select count(*)::int as n from sluice.awaited");
    return rows[0].n >= 2;
  });
  finish.resolve();
  expect(await Promise.all([one, two])).toEqual(["waited for", "waited for"]);

  const alone = await s.sluice.enqueue(job, "alone");
  await until("it to have left", async () => (await alone.status()) === null);
  await expect(alone.result()).rejects.toMatchObject({ code: "result_not_kept" });
  expect(runs).toBe(2);
});

test("a wait for a result ends with its timeout", async () => {
  const s = await scene();
  const handle = await s.sluice.enqueue(task("nobody"));
  await expect(handle.result({ timeoutMs: 100 })).rejects.toMatchObject({ code: "wait_timeout" });
  await expect(handle.result({ timeoutMs: -1 })).rejects.toMatchObject({ code: "invalid_option" });
});

test("an idempotency key enqueues once per type until it expires", async () => {
  const s = await scene({ idempotencyMs: 60_000 });
  const job = task("job", { input: type<{ n: number }>() });
  const other = task("other", { input: type<{ n: number }>() });
  const key = { idempotencyKey: "k" };
  const first = await s.sluice.enqueue(job, { n: 1 }, key);
  const again = await s.sluice.enqueue(job, { n: 1 }, key);
  expect([first.existed, again.existed, again.id]).toEqual([false, true, first.id]);
  await expect(s.sluice.enqueue(job, { n: 2 }, key)).rejects.toMatchObject({
    code: "idempotency_conflict",
  });
  expect((await s.sluice.enqueue(other, { n: 2 }, key)).existed).toBe(false);
  const racing = await Promise.all(
    Array.from({ length: 10 }, () => s.sluice.enqueue(job, { n: 3 }, { idempotencyKey: "race" })),
  );
  expect(new Set(racing.map(({ id }) => id)).size).toBe(1);
  expect(racing.filter(({ existed }) => !existed)).toHaveLength(1);

  // Its task is over and forgotten, the key is not; when its own time is over, it is free again.
  await s.sql.query("update sluice.idempotency set expires_at = now() - interval '1 second' where key = 'k'");
  const later = await s.sluice.enqueue(job, { n: 2 }, key);
  expect(later.existed).toBe(false);
  expect(later.id).not.toBe(first.id);
});

test("expired history is pruned, except tasks that still block an order key", async () => {
  const s = await scene({
    history: { succeededMs: 3_600_000, failedMs: 3_600_000, cancelledMs: 3_600_000 },
  });
  const job = task("job", {
    input: type<"ok" | "no">(),
    order: { key: (i) => i, onFailure: "block" },
    retry: { attempts: 1 },
  });
  const handler = job.handle((input) => {
    if (input === "no") throw new Error("no");
  });
  const worker = await s.worker({ handlers: [handler] });
  const old = (
    await s.sluice.enqueueMany(
      job,
      Array.from({ length: 50 }, () => "ok" as const),
    )
  ).ids();
  const blocks = await s.sluice.enqueue(job, "no");
  await s.sluice.task(old.at(-1)!).result({ timeoutMs: 10_000 });
  await expect(blocks.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
  await s.sql.query("update sluice.done set finished_at = finished_at - interval '2 hours'");
  await s.sql.query("insert into sluice.idempotency values ('job', 'gone', 1, '', now() - interval '1 second')");
  const fresh = await s.sluice.enqueue(job, "ok");
  await fresh.result({ timeoutMs: 10_000 });

  await until("the old ones to be gone", async () => (await s.sluice.counts()).succeeded === 1, 15_000);
  expect(await s.sluice.task(old[0]!).status()).toBeNull();
  expect((await fresh.status())?.state).toBe("succeeded");
  // A failed task that blocks its order key has not served yet.
  expect((await blocks.status())?.state).toBe("failed");
  await until(
    "the key to be gone",
    async () => (await s.sql.query("select * from sluice.idempotency")).rows.length === 0,
  );
  expect((await s.sql.query("select count(*)::int as n from sluice.task")).rows).toEqual([{ n: 2 }]);
  await worker.stop();
});

test("large results are sent a few per statement, and one that is too large alone", () => {
  const [outbox, session] = [new Outbox(), new Session("1", 0)];
  const MIB = 1024 * 1024;
  for (const [i, mib] of [5, 2, 2, 1, 0, 0, 0].entries())
    outbox.addSuccess(session, {
      claim: issueClaim(String(i), "1"),
      result: "x".repeat(mib * MIB),
      holds: 0,
      startedMs: 0,
    });
  const parcels = [];
  while (outbox.size > 0) parcels.push(outbox.takeSuccesses(3)!.items.map((s) => s.claim.id));
  expect(parcels).toEqual([["0"], ["1", "2"], ["3", "4", "5"], ["6"]]);
});
