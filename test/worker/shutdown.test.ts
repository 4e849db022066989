import { expect, test, vi } from "vitest";
import { limit, SluiceError, task, type } from "../../src/index.js";
import { issueClaim } from "../../src/core/claim.js";
import { silentLogger } from "../../src/core/ports.js";
import { Claimer } from "../../src/worker/claim.js";
import { Outbox } from "../../src/worker/outbox.js";
import { Payloads } from "../../src/worker/payloads.js";
import { Permits } from "../../src/worker/permits.js";
import { Session } from "../../src/worker/session.js";
import { contractOf, type WorkType } from "../fault/programs/work.js";
import { readAudit, violations } from "../support/audit.js";
import { scene, signal, until } from "../flow/scene.js";

test("a stopped worker finishes tasks within the grace period and releases the rest without using an attempt", async () => {
  const s = await scene();
  const job = task("job", { input: type<"short" | "long">(), concurrency: 5 });
  const [begun, finish] = [signal(), signal()];
  const stops: unknown[] = [];
  let running = 0;
  const worker = await s.worker({
    handlers: [
      job.handle(async (input, ctx) => {
        if (++running === 2) begun.resolve();
        if (input === "short") return finish.promise;
        await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
        stops.push((ctx.signal.reason as { code: string }).code);
      }),
    ],
  });
  const short = await s.sluice.enqueue(job, "short");
  const long = await s.sluice.enqueue(job, "long");
  await begun.promise;
  const stopped = worker.stop({ graceMs: 300 });
  // It fits the grace, however slow the machine: it ends before any timer can.
  finish.resolve();
  // One permit for the one that is left, or none: no claim is under way any more, and none will be.
  await until("the last claim to be answered", () => worker.status().permitsInUse <= 1);
  const late = await s.sluice.enqueue(job, "short");
  await stopped;

  expect((await short.status())?.state).toBe("succeeded");
  expect(await long.status()).toMatchObject({ state: "ready", attempt: 0 });
  expect(await late.status()).toMatchObject({ state: "ready", attempt: 0 });
  await until("the handler to hear of it", () => stops.length === 1);
  expect(stops).toEqual(["stopped"]);
  expect(worker.status()).toMatchObject({ inFlight: 0, permitsInUse: 0, id: null });
  expect((await s.sql.query("select * from sluice.worker")).rows).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
});

test("stop waits no longer than necessary, and a second call waits for the first", async () => {
  const s = await scene();
  const job = task("job");
  const worker = await s.worker({ handlers: [job.handle(() => {})] });
  await (await s.sluice.enqueue(job)).result();
  const from = performance.now();
  await Promise.all([worker.stop(), worker.stop({ graceMs: 0 })]);
  expect(performance.now() - from).toBeLessThan(5_000);
  await expect(worker.start()).rejects.toMatchObject({ code: "stopped" });
});

test("a worker that is stopped while it starts does not run", async () => {
  const s = await scene();
  const job = task("job");
  const worker = s.sluice.worker({ handlers: [job.handle(() => {})] });
  const started = worker.start().catch((e: unknown) => e);
  await worker.stop();
  await started;
  expect((await s.sql.query("select * from sluice.worker")).rows).toEqual([]);
  const handle = await s.sluice.enqueue(job);
  await expect(handle.result({ timeoutMs: 300 })).rejects.toMatchObject({ code: "wait_timeout" });
});

test("a handler that keeps its transaction open forever does not prevent the worker from stopping", async () => {
  const s = await scene();
  const job = task("job");
  const begun = signal();
  const worker = await s.worker({
    handlers: [
      job.handle((_, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query("select 1");
          begun.resolve();
          await new Promise(() => {});
        }),
      ),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  await begun.promise;
  await worker.stop({ graceMs: 0 });
  expect(await handle.status()).toMatchObject({ state: "ready", attempt: 0 });
});

test("a process exits with code 0 on SIGTERM, and its tasks run elsewhere", async () => {
  const s = await scene();
  const types: WorkType[] = [{ name: "job", concurrency: 3 }];
  const [first] = await s.fleet(1, { types, holds: true });
  const handle = await s.sluice.enqueue(contractOf(types[0]!), { ms: 1, order: "k" });
  await first!.process.line((line) => line.startsWith(`started ${handle.id}`));
  expect(await first!.end()).toBe(0);
  await s.fleet(1, { types });
  await handle.result({ timeoutMs: 10_000 });
  const { runs } = await readAudit(s.sql);
  expect(runs.map(({ attempt, ended }) => [attempt, ended])).toEqual([
    [1, false],
    [1, true],
  ]);
  expect(await violations(s.sql)).toEqual([]);
});

test("a stopped claimer sends no statement and logs nothing", async () => {
  vi.useFakeTimers();
  const [session, outbox, permits] = [new Session("1", 1e9), new Outbox(), new Permits(1)];
  const reply = signal();
  const told: string[] = [];
  let sent = 0;
  const rows = async (): Promise<never> => {
    sent++;
    await reply.promise;
    throw new SluiceError("stopped", "this connection was closed");
  };
  permits.take(1);
  outbox.addSuccess(session, { claim: issueClaim("1", "1"), result: "", holds: 0, startedMs: 0 });
  const claimer = new Claimer({
    connections: [{ rows } as never],
    streams: [1],
    permits,
    payloads: new Payloads(1_000),
    outbox,
    executions: {} as never,
    claimBatchSize: 1,
    pollIntervalMs: 10,
    keepHistory: true,
    bell: false,
    clock: { now: () => 0 },
    log: { ...silentLogger, warn: (message) => void told.push(message) },
    current: () => session,
    holds: () => true,
    onDoubt: () => {},
    onLost: () => {},
    onUnplaced: () => {},
  });
  claimer.start();
  claimer.stop();
  reply.resolve();
  await vi.advanceTimersByTimeAsync(10_000);
  vi.useRealTimers();
  expect([sent, told]).toEqual([1, []]);
});

test("start of a running worker is refused, and the worker continues", async () => {
  const s = await scene();
  const job = task("job");
  const worker = await s.worker({ handlers: [job.handle(() => "done")] });
  await expect(worker.start()).rejects.toMatchObject({
    code: "invalid_option",
    message: "this worker is already running",
  });
  expect(await (await s.sluice.enqueue(job)).result({ timeoutMs: 10_000 })).toBe("done");
});

test("a worker that could not declare its tasks is stopped", async () => {
  const s = await scene();
  await s.sluice.enqueue(task("other", { limits: [limit("shape", { total: 1 })] }));
  const job = task("job", { limits: [limit("shape", { perKey: 1 }).for("k")] });
  const worker = s.sluice.worker({ handlers: [job.handle(() => {})] });
  await expect(worker.start()).rejects.toMatchObject({ code: "limit_shape" });
  await expect(worker.start()).rejects.toMatchObject({
    code: "stopped",
    message: expect.stringMatching(/^this worker failed to start; create a new one: .*shape/) as string,
  });
});
