import { EventEmitter } from "node:events";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { nextPollMs, POLL_MS_MIN } from "../../src/tasks/ended.js";
import { silentLogger } from "../../src/core/ports.js";
import { Database } from "../../src/postgres/database.js";
import { Listener } from "../../src/postgres/listen.js";
import { freshDatabase, type TestDatabase } from "../support/database.js";

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

/** A listener, and a connection that notifies it. */
async function listening() {
  const db = new Database({ url: database.url });
  const listener = new Listener(db, { log: silentLogger });
  listener.need({ lingers: false });
  await listener.start();
  await expect.poll(() => listener.listens).toBe(true);
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(async () => {
    await client.end();
    await listener.close();
    await db.close();
  });
  const notify = (payload: string): Promise<unknown> => client.query("select pg_notify('sluice', $1)", [payload]);
  return { listener, client, notify };
}

test("a listener for one payload receives it, and no other", async () => {
  const { listener, notify } = await listening();
  const heard: string[] = [];
  const all = new Promise<void>((resolve) => {
    listener.on((payload) => payload === "last" && resolve());
  });
  listener.onPayload("done:1", () => heard.push("first"));
  listener.onPayload("done:1", () => heard.push("second"));
  const stop = listener.onPayload("done:2", () => heard.push("stopped"));
  listener.onPayload("done:3", () => heard.push("third"));
  stop();
  for (const payload of ["done:1", "done:2", "done:30", "last"]) await notify(payload);
  await all;
  expect(heard).toEqual(["first", "second"]);
});

test("a listener for one payload is called when the connection was reopened", async () => {
  const { listener, client } = await listening();
  const again = new Promise<void>((resolve) => void listener.onPayload("done:1", resolve));
  await client.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()",
  );
  await again;
  expect(listener.listens).toBe(true);
});

test("a wait polls once soon, and then once a second while notifications arrive", () => {
  expect(nextPollMs(POLL_MS_MIN, { listens: true })).toBe(1_000);
  expect(nextPollMs(POLL_MS_MIN, { listens: false })).toBe(75);
  expect(nextPollMs(POLL_MS_MIN, null)).toBe(75);
  expect(nextPollMs(900, { listens: false })).toBe(1_000);
});

test("a connection that does not answer LISTEN is abandoned", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let opened = 0;
  const client = (): EventEmitter => {
    opened++;
    let fail!: (e: Error) => void;
    const silent = new Promise<never>((_, reject) => (fail = reject));
    const destroy = (): void => fail(new Error("destroyed"));
    return Object.assign(new EventEmitter(), {
      connect: () => Promise.resolve(),
      query: () => silent,
      end: () => Promise.resolve(),
      connection: { stream: { destroy } },
    });
  };
  const listener = new Listener({ schema: "sluice", client } as never, { log: silentLogger });
  listener.need({ lingers: false });
  let started = false;
  void listener.start().then(() => (started = true));
  await vi.advanceTimersByTimeAsync(9_000);
  expect([started, opened]).toEqual([false, 1]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([started, opened]).toEqual([true, 2]);
  await listener.close();
});
