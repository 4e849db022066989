import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { cancel, fixed, limit, Sluice, snooze, task, type } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { endPool, openPool } from "../../src/postgres/part.js";
import { violations } from "../support/audit.js";
import { Proxy } from "../fault/proxy.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";

const LEASE_MS = 1_500;

async function withEffects(): Promise<Scene & { effects(): Promise<string[]> }> {
  const s = await scene();
  await s.sql.query("create table effect (what text)");
  const effects = async (): Promise<string[]> =>
    (await s.sql.query<{ what: string }>("select what from effect order by what")).rows.map((r) => r.what);
  return { ...s, effects };
}

const EFFECT = "insert into effect values ($1)";

test("ctx.transaction commits effects and completion together, and the slots start the next task", async () => {
  const s = await withEffects();
  const job = task("job", {
    input: type<number>(),
    order: () => "k",
    concurrency: 1,
    limits: [limit("tenant", { perKey: 1 }).for("t")],
  });
  const worker = await s.worker({
    handlers: [
      job.handle((n, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query(EFFECT, [`${n}`]);
          return n * 10;
        }),
      ),
    ],
  });
  const ids = (await s.sluice.enqueueMany(job, [1, 2, 3])).ids();
  const results = [];
  for (const id of ids) results.push(await s.sluice.task(id).result({ timeoutMs: 10_000 }));
  expect(results).toEqual([10, 20, 30]);
  expect(await s.effects()).toEqual(["1", "2", "3"]);
  await until("the permits to come back", () => worker.status().permitsInUse === 0);
  expect(worker.status().completed).toBe(3);
  expect(await violations(s.sql)).toEqual([]);
});

test("ctx.transaction rolls back and retries a failure, and snooze and cancel work inside", async () => {
  const s = await withEffects();
  const job = task("job", {
    input: type<"fails" | "bad sql" | "snoozes" | "cancels">(),
    retry: { attempts: 2, backoff: fixed(1) },
  });
  let snoozes = 0;
  await s.worker({
    handlers: [
      job.handle((what, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query(EFFECT, [`${what} ${ctx.attempt}`]);
          if (what === "fails" && ctx.attempt === 1) throw new Error("no");
          if (what === "bad sql" && ctx.attempt === 1) await tx.query("select nothing from nowhere");
          if (what === "snoozes" && snoozes++ === 0) throw snooze(1);
          if (what === "cancels") throw cancel("enough");
        }),
      ),
    ],
  });
  for (const what of ["fails", "bad sql", "snoozes"] as const)
    await (await s.sluice.enqueue(job, what)).result({ timeoutMs: 10_000 });
  const cancelled = await s.sluice.enqueue(job, "cancels");
  await expect(cancelled.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
    code: "task_cancelled",
    details: { reason: "enough" },
  });
  expect(await s.effects()).toEqual(["bad sql 2", "fails 2", "snoozes 1"]);
});

test("ctx.transaction rolls back if its lease was lost", async () => {
  const s = await withEffects();
  const job = task("job", { concurrency: 1 });
  const errors: unknown[] = [];
  let runs = 0;
  await s.worker({
    leaseMs: LEASE_MS,
    handlers: [
      job.handle(async (_, ctx) => {
        const run = ++runs;
        const done = ctx.transaction(async (tx) => {
          await tx.query(EFFECT, [`run ${run}`]);
          // As a reaper sees a worker that was away for too long.
          if (run === 1) await s.sql.query("update sluice.worker set expires_at = now() - interval '1 second'");
          if (run === 1) await s.sql.query("select sluice.reap()");
        });
        await done.catch((e: unknown) => errors.push((e as { code: string }).code));
        await done;
      }),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  await handle.result({ timeoutMs: 10_000 });
  expect(errors).toEqual(["lease_lost"]);
  expect(await s.effects()).toEqual(["run 2"]);
  expect((await handle.status())?.attempt).toBe(1);
  expect(await violations(s.sql)).toEqual([]);
});

test("ctx.transaction survives a lost connection: neither the process nor the task ends", async () => {
  const s = await withEffects();
  const job = task("job", { retry: { attempts: 3, backoff: fixed(1) } });
  let runs = 0;
  const worker = await s.worker({
    handlers: [
      job.handle((_, ctx) =>
        ctx.transaction(async (tx) => {
          const run = ++runs;
          await tx.query(EFFECT, [`run ${run}`]);
          const { rows } = await tx.query("select pg_backend_pid() as pid");
          if (run > 1) return;
          // Between two statements no reply is pending that could report the lost connection.
          // Once the backend is gone its last words are here; two turns of the loop deliver them.
          await s.sql.query("select pg_terminate_backend($1, 5000)", [rows[0].pid]);
          for (let i = 0; i < 2; i++) await new Promise((resolve) => setImmediate(resolve));
        }),
      ),
    ],
  });
  await (await s.sluice.enqueue(job)).result({ timeoutMs: 10_000 });
  expect(await s.effects()).toEqual(["run 2"]);
  await until("the permit to come back", () => worker.status().permitsInUse === 0);
});

test("ctx.transaction that stays open blocks no other task, worker or limit", async () => {
  const s = await withEffects();
  const [begun, finish] = [signal(), signal()];
  const job = task("job", { input: type<"long" | "short">(), concurrency: 3 });
  const handler = job.handle((input, ctx) =>
    ctx.transaction(async (tx) => {
      await tx.query(EFFECT, [input]);
      if (input === "short") return;
      begun.resolve();
      await finish.promise;
    }),
  );
  await s.worker({ handlers: [handler], name: "one" });
  const long = await s.sluice.enqueue(job, "long");
  await begun.promise;
  await s.worker({ handlers: [handler], name: "two" });
  const short = (
    await s.sluice.enqueueMany(
      job,
      Array.from({ length: 30 }, () => "short" as const),
    )
  ).ids();
  for (const id of short) await s.sluice.task(id).result({ timeoutMs: 10_000 });
  await s.sluice.limits.set("job", { total: 2 });
  expect(await s.effects()).toHaveLength(30);
  finish.resolve();
  await long.result({ timeoutMs: 10_000 });
  expect(await s.effects()).toHaveLength(31);
  expect(await violations(s.sql)).toEqual([]);
});

test("ctx.enqueue creates a task if and only if the execution completes", async () => {
  const s = await withEffects();
  const seen: string[] = [];
  const child = task("child", { input: type<string>(), order: () => "children" });
  const parent = task("parent", {
    input: type<"plain" | "in a transaction">(),
    retry: { attempts: 2, backoff: fixed(1) },
  });
  await s.worker({
    handlers: [
      child.handle((name) => void seen.push(name)),
      parent.handle(async (how, ctx) => {
        await ctx.enqueue(child, `${how}, attempt ${ctx.attempt}`);
        if (ctx.attempt === 1) throw new Error("not this time");
        if (how === "plain") return "done";
        return ctx.transaction(async (tx) => {
          await tx.query(EFFECT, [how]);
          return "done";
        });
      }),
    ],
  });
  for (const how of ["plain", "in a transaction"] as const)
    expect(await (await s.sluice.enqueue(parent, how)).result({ timeoutMs: 10_000 })).toBe("done");
  await until("all to end", async () => (await s.sluice.counts()).succeeded === 4);
  expect(seen).toEqual(["plain, attempt 2", "in a transaction, attempt 2"]);
  expect(await s.effects()).toEqual(["in a transaction"]);
});

test("ctx.enqueue resolves to the id inside ctx.transaction, and keeps the order of the calls", async () => {
  const s = await scene();
  const child = task("child", { input: type<string>(), order: () => "k" });
  const parent = task("parent", { output: type<unknown>(), retry: { attempts: 1 } });
  const seen: unknown[] = [];
  await s.worker({
    handlers: [
      parent.handle(async (_, ctx) => {
        const before = await ctx.enqueue(child, "before");
        seen.push({ ...before });
        const failed = ctx.transaction(async (tx) => {
          const lost = await ctx.enqueue(child, "in a transaction that rolls back");
          const { rows } = await tx.query("select input from sluice.task where id = $1", [lost.id]);
          seen.push(rows);
          throw new Error("no");
        });
        await failed.catch(() => {});
        seen.push({ ...before });
        return ctx.transaction(async (tx) => {
          const [a, b] = await Promise.all([ctx.enqueue(child, "a"), ctx.enqueue(child, "b")]);
          const { rows } = await tx.query("select input from sluice.task where id = any ($1)", [
            [before.id, a.id, b.id],
          ]);
          return { before, a, b, existed: a.existed, rows: rows.length };
        });
      }),
    ],
  });
  const handle = await s.sluice.enqueue(parent);
  const result = (await handle.result({ timeoutMs: 10_000 })) as Record<string, { id: string }>;
  expect(seen).toEqual([
    { id: null, existed: null },
    [{ input: "in a transaction that rolls back" }],
    { id: null, existed: null },
  ]);
  expect(result).toMatchObject({ existed: false, rows: 3 });
  const { rows } = await s.sql.query<{ id: string; input: string }>(
    "select id::text, input from sluice.task where id <> $1 order by id",
    [handle.id],
  );
  expect(rows.map(({ input }) => input)).toEqual(["before", "in a transaction that rolls back", "a", "b"]);
  expect([rows[0], rows[2], rows[3]].map((row) => row?.id)).toEqual(
    [result["before"], result["a"], result["b"]].map((of) => of?.id),
  );
});

test("ctx.enqueue outside a transaction fills in the id of a result that contains it", async () => {
  const s = await scene();
  const child = task("child", { input: type<string>() });
  const parent = task("parent", { output: type<{ child: { id: string | null; existed: boolean | null } }>() });
  await s.worker({
    handlers: [parent.handle(async (_, ctx) => ({ child: await ctx.enqueue(child, "c", { idempotencyKey: "k" }) }))],
  });
  const first = await (await s.sluice.enqueue(parent)).result({ timeoutMs: 10_000 });
  const second = await (await s.sluice.enqueue(parent)).result({ timeoutMs: 10_000 });
  expect(await s.sluice.task(first.child.id!).status()).toMatchObject({ type: "child" });
  expect([first.child.existed, second.child]).toEqual([false, { id: first.child.id, existed: true }]);
});

test("a failed insert of ctx.enqueue inside ctx.transaction fails the transaction even if the handler catches it", async () => {
  const s = await scene();
  const child = task("child", { input: type<string>() });
  const parent = task("parent", { output: type<unknown>(), retry: { attempts: 1 } });
  const codes: unknown[] = [];
  await s.worker({
    handlers: [
      parent.handle((_, ctx) =>
        ctx.transaction(async () => {
          await ctx.enqueue(child, "one", { idempotencyKey: "k" });
          await ctx.enqueue(child, "two", { idempotencyKey: "k" }).catch((e: { code: string }) => codes.push(e.code));
          return "done";
        }),
      ),
    ],
  });
  const handle = await s.sluice.enqueue(parent);
  await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
    code: "task_failed",
    details: { error: { code: "idempotency_conflict" } },
  });
  expect(codes).toEqual(["idempotency_conflict"]);
  const { rows } = await s.sql.query("select id from sluice.task where id <> $1", [handle.id]);
  expect(rows).toEqual([]);
});

test("ctx.enqueue refuses an invalid task immediately", async () => {
  const s = await scene();
  const child = task("child", { input: type<unknown>() });
  const parent = task("parent", { retry: { attempts: 1 } });
  const codes: unknown[] = [];
  await s.worker({
    handlers: [
      parent.handle(async (_, ctx) => {
        await ctx.enqueue(child, "\0").catch((e: { code: string }) => codes.push(e.code));
        await ctx.enqueue(child, 1, { priority: 0.5 }).catch((e: { code: string }) => codes.push(e.code));
      }),
    ],
  });
  await (await s.sluice.enqueue(parent)).result({ timeoutMs: 10_000 });
  expect(codes).toEqual(["input_not_storable", "invalid_option"]);
});

test("a handler waits as long as necessary for a free connection, but not for one to be opened", async () => {
  const s = await scene();
  const pool = openPool({ connectionString: s.url, max: 1, connectionTimeoutMillis: 5_000 });
  const held = await pool.connect();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const waiting = pool.connect();
  await vi.advanceTimersByTimeAsync(10_000);
  vi.useRealTimers();
  held.release();
  (await waiting).release();
  await endPool(pool);

  const deaf = createServer(() => {}).listen(0, "127.0.0.1");
  await once(deaf, "listening");
  const { port } = deaf.address() as AddressInfo;
  const nowhere = openPool({ host: "127.0.0.1", port, max: 1, connectionTimeoutMillis: 200 });
  await expect(nowhere.connect()).rejects.toThrow(/timeout/);
  await endPool(nowhere);
  deaf.close();
});

test("ctx.enqueue in ctx.transaction creates a task if and only if the transaction commits", async () => {
  const s = await scene();
  const child = task("child", { input: type<string>() });
  const parent = task("parent", { input: type<boolean>(), retry: { attempts: 1 } });
  await s.worker({
    handlers: [
      parent.handle((fails, ctx) =>
        ctx.transaction(async () => {
          await ctx.enqueue(child, "c");
          if (fails) throw new Error("no");
        }),
      ),
    ],
  });
  await (await s.sluice.enqueue(parent, false)).result({ timeoutMs: 10_000 });
  const failed = await s.sluice.enqueue(parent, true);
  await expect(failed.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
  expect(await s.sluice.counts()).toMatchObject({ ready: 1, succeeded: 1, failed: 1 });
});

test("more concurrent transactions than connections all complete", async () => {
  const s = await withEffects();
  const job = task("job", { input: type<number>(), retry: { attempts: 1 } });
  await s.worker({
    handlerConnections: 1,
    handlers: [
      job.handle((n, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query(EFFECT, [`${n}`]);
        }),
      ),
    ],
  });
  await s.sluice.enqueueMany(
    job,
    Array.from({ length: 100 }, (_, n) => n),
  );
  await until("all to end", async () => (await s.sluice.counts()).succeeded === 100);
  expect(await s.effects()).toHaveLength(100);
});

test.each([
  ["a transaction on a dead connection releases it when its lease is lost", true],
  ["a transaction that never ends releases its connection when its lease is lost", false],
])("%s", async (_, asks) => {
  const s = await scene();
  const proxy = await Proxy.start(s.url);
  const behind = await Sluice.connect({ url: proxy.url, migrate: false, logger: silentLogger });
  onTestFinished(() => behind.close());
  const job = task("job", { input: type<null>() });
  const [inside, dead] = [signal(), signal()];
  let runs = 0;
  const worker = behind.worker({
    leaseMs: LEASE_MS,
    handlerConnections: 1,
    handlers: [
      job.handle((_, ctx) =>
        ctx.transaction(async (tx) => {
          if (++runs > 1) return "again";
          inside.resolve();
          await dead.promise;
          if (asks) await tx.query("select 1");
          else await new Promise<never>(() => {});
          return "first";
        }),
      ),
    ],
  });
  await worker.start();
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  const { id } = await s.sluice.enqueue(job, null);
  await inside.promise;
  proxy.freeze();
  dead.resolve();
  const expired = "select from sluice.worker where expires_at < clock_timestamp()";
  await until("the lease to run out", async () => (await s.sql.query(expired)).rowCount === 1);
  proxy.thaw();
  expect(await s.sluice.task(id).result({ timeoutMs: 10_000 })).toBe("again");
});
