import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { Sluice, task, type, workflow } from "../../src/index.js";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { ends } from "../support/ends.js";
import { codeOf, WAITING_FOR } from "./house.js";

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase({ migrated: true });
});
afterAll(() => database.drop());

const echo = task("echo", { input: type<unknown>() });
const flow = workflow("flow", { input: type<object>() }, (w) => {
  w.task("only", echo, { n: 1 });
});

/** One connection that waits for a lock, so that later calls wait for the connection. */
async function stuck(): Promise<{ lock: pg.Client; free: () => Promise<void> }> {
  const lock = new pg.Client(database.url);
  await lock.connect();
  await lock.query("begin; lock table sluice.stream in access exclusive mode");
  return {
    lock,
    free: async () => {
      await lock.query("rollback");
      await lock.end();
    },
  };
}

/** Everything that needs a connection. */
function calls(sluice: Sluice, id: string): (() => Promise<unknown>)[] {
  const handle = sluice.task(id);
  return [
    () => sluice.enqueue(echo, 1),
    () => sluice.enqueueMany(echo, [1, 2]),
    () => sluice.start(flow, {}),
    () => sluice.counts(),
    () => sluice.limits.list(),
    () => sluice.pause("default"),
    () => handle.status(),
    () => handle.result(),
    () => handle.cancel(),
  ];
}

test("close() rejects calls that wait for a connection with the code closed", async () => {
  const sluice = await Sluice.connect({ url: database.url, apiConnections: 2 });
  const { id } = await sluice.enqueue(echo, 0);
  await sluice.start(flow, {});
  const { lock, free } = await stuck();
  const blocked = codeOf(() => sluice.enqueue(echo, 1));
  await expect.poll(async () => (await lock.query(WAITING_FOR, ["sluice.stream"])).rowCount).toBe(1);
  const waiting = calls(sluice, id).map((call) => codeOf(call));
  await sluice.close();
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => "closed"));
  expect(await blocked).toBe("closed");
  await free();
});

test("close() rejects calls that wait for a connection of the caller's pool, and never sends them", async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  pool.on("error", () => {});
  const sluice = await Sluice.connect({ pool });
  const { id } = await sluice.enqueue(echo, 0);
  await sluice.start(flow, {});
  const taken = await pool.connect();
  const waiting = calls(sluice, id).map((call) => codeOf(call));
  await expect.poll(() => pool.waitingCount).toBeGreaterThanOrEqual(waiting.length);
  await sluice.close();
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => "closed"));
  const tasks = "select count(*)::int as n from sluice.task";
  const before = (await taken.query(tasks)).rows;
  taken.release();
  expect((await pool.query(tasks)).rows).toEqual(before);
  await pool.end();
});

test("close() ends waits for a result on the caller's pool", async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });
  const sluice = await Sluice.connect({ pool });
  const handle = await sluice.enqueue(echo, 0);
  const run = await sluice.start(flow, {});
  const waits = [codeOf(() => handle.result()), codeOf(() => run.result())];
  const announced = "select from sluice.awaited where id in ($1, $2)";
  const ids = [handle.id, -Number(run.id)];
  await expect.poll(async () => (await pool.query(announced, ids)).rowCount).toBe(2);
  await sluice.close();
  onTestFinished(() => void pool.end());
  expect(await ends(Promise.all(waits))).toEqual(["closed", "closed"]);
});
