import { afterAll, beforeAll, expect, test } from "vitest";
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
