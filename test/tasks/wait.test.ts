import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/core/ports.js";
import { Sluice, SluiceError, task, type, workflow } from "../../src/index.js";
import { waitBoundsOf, Wait } from "../../src/tasks/wait.js";
import { codeOf, openHouse, WAITING_FOR, type House } from "../client/house.js";
import { Proxy } from "../fault/proxy.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const answer = task("answer", { input: type<object>() });
const flow = workflow("flow", { input: type<object>() }, (w) => ({
  answer: w.task("answer", answer, {}),
}));

/** Terminates the backends that wait for a lock on this table. */
async function terminateLooks(table: string, waiters: number): Promise<void> {
  const client = await house.begin();
  await client.query(`lock table ${table} in access exclusive mode`);
  const looks = async (): Promise<number | null> => (await client.query(WAITING_FOR, [table])).rowCount;
  await expect.poll(looks).toBe(waiters);
  await client.query(`select pg_terminate_backend(pid) from (${WAITING_FOR}) l`, [table]);
  await expect.poll(looks).toBe(0);
  await client.query("rollback");
  client.release();
}

test("result() continues to wait when its backend is terminated", async () => {
  const handle = await house.sluice.enqueue(answer, {});
  const result = handle.result();
  await terminateLooks("sluice.task", 1);
  await terminateLooks("sluice.task", 1);
  const worker = await house.work([answer.handle(() => 42)]);
  expect(await result).toBe(42);
  await worker.stop();
});

test("result() warns once within 5 s that no live worker serves the type", async () => {
  const lines: [string, Record<string, unknown> | undefined][] = [];
  const warn = (message: string, fields?: Record<string, unknown>) => void lines.push([message, fields]);
  const sluice = await Sluice.connect({ url: house.url, migrate: false, logger: { ...silentLogger, warn } });
  onTestFinished(() => sluice.close());
  const unserved = task("unserved", { input: type<object>() });
  const handles = [await sluice.enqueue(unserved, {}), await sluice.enqueue(unserved, {})];
  const startedMs = performance.now();
  const results = handles.map((handle) => handle.result({ timeoutMs: 20_000 }));
  await expect.poll(() => lines.length, { timeout: 10_000 }).toBe(1);
  expect(performance.now() - startedMs).toBeLessThan(5_000);
  const reason = 'no live worker serves "unserved" in queue "default"';
  expect(lines).toEqual([
    [
      "no live worker serves the type of a task whose result is awaited",
      { task: expect.stringMatching(/^\d+$/) as string, type: "unserved", queue: "default", reason },
    ],
  ]);
  const worker = await house.work([unserved.handle(() => 42)]);
  expect(await Promise.all(results)).toEqual([42, 42]);
  await worker.stop();
  await expect((await sluice.enqueue(unserved, {})).result({ timeoutMs: 4_500 })).rejects.toMatchObject({
    code: "wait_timeout",
  });
  expect(lines).toHaveLength(1);
});

test("wait_timeout says why the task has not ended", async () => {
  const reason = 'no live worker serves "unserved-too" in queue "default"';
  const handle = await house.sluice.enqueue(task("unserved-too", { input: type<object>() }), {});
  await expect(handle.result({ timeoutMs: 50 })).rejects.toMatchObject({
    code: "wait_timeout",
    message: `task ${handle.id} is still ready after 50 ms: ${reason}`,
    details: { id: handle.id, state: "ready", reason, reasons: [{ kind: "noWorker", message: reason }] },
  });
});

test("run.result() and run.watch() continue when their backends are terminated", async () => {
  const run = await house.sluice.start(flow, {});
  const result = run.result();
  const states: string[] = [];
  const watched = (async () => {
    for await (const status of run.watch()) states.push(status.state);
  })();
  await terminateLooks("sluice.workflow_run", 2);
  const worker = await house.work([answer.handle(() => 42)]);
  expect(await result).toEqual({ answer: 42 });
  await watched;
  expect(states.at(-1)).toBe("succeeded");
  await worker.stop();
});

test("result() continues to wait during an outage of the database", async () => {
  const proxy = await Proxy.start(house.url);
  const behind = await connect(proxy.url);
  const handle = await behind.enqueue(answer, {});
  const cut = proxy.loseRequests(() => true);
  const result = handle.result();
  // The task ends during the outage, so no notification can arrive.
  const worker = await house.work([answer.handle(() => 42)]);
  await expect.poll(async () => (await house.sluice.task(handle.id).status())?.state).toBe("succeeded");
  cut.end();
  expect(await result).toBe(42);
  await behind.close();
  await worker.stop();
});

test("a wait for an unresponsive database ends with its timeout, its signal or close()", async () => {
  const proxy = await Proxy.start(house.url);
  const behind = await connect(proxy.url);
  const handle = await behind.enqueue(task("never"));
  proxy.freeze();
  expect(await codeOf(() => handle.result({ timeoutMs: 50 }))).toBe("wait_timeout");
  const reason = new Error("enough");
  const stop = new AbortController();
  const aborted = handle.result({ signal: stop.signal }).catch((e: unknown) => e);
  const closed = codeOf(() => handle.result());
  stop.abort(reason);
  expect(await aborted).toBe(reason);
  await behind.close();
  expect(await closed).toBe("closed");
});

test("a wait fails immediately if the server refuses the connection, for example with a wrong password", async () => {
  const wait = new Wait({ closed: false } as never, { timeoutMs: null, signal: null }, "task 1");
  const wrong = Object.assign(new Error("password authentication failed"), { code: "28P01" });
  await expect(wait.ask(() => Promise.reject(wrong))).rejects.toBe(wrong);
  const missing = new SluiceError("schema_missing", "gone");
  await expect(wait.ask(() => Promise.reject(missing))).rejects.toBe(missing);
});

function connect(url: string): Promise<Sluice> {
  return Sluice.connect({ url, migrate: false, listen: false, logger: quiet });
}

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

test("statements of one call share its timeout", async () => {
  const bounds = waitBoundsOf({ timeoutMs: 1_000 });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(new Wait({} as never, bounds, "run 1").leftMs).toBeLessThan(850);
});
