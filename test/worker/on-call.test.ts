import type pg from "pg";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Sluice, task } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { OnCall } from "../../src/worker/on-call.js";
import { Permits } from "../../src/worker/permits.js";
import { Poll } from "../../src/worker/poll.js";
import { Session } from "../../src/worker/session.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";

const NEVER_MS = 60_000;
const WORKERS = 10;

const listening = async (sql: pg.Pool): Promise<number> => {
  const { rows } = await sql.query<{ n: number }>(
    "select count(*)::int as n from pg_stat_activity where datname = current_database() and query ilike 'listen %'",
  );
  return rows[0]!.n;
};

/** Workers of one kind, each with its own connection to listen, that take one task at a time and hardly ever poll. */
async function crowd(s: Scene, handler: () => Promise<void>): Promise<void> {
  const job = task("job");
  for (let i = 0; i < WORKERS; i++) {
    const sluice = await Sluice.connect({ url: s.url, migrate: false, apiConnections: 2 });
    onTestFinished(() => sluice.close({ graceMs: 0 }));
    const options = { maxConcurrentTasks: 1, pollIntervalMs: NEVER_MS };
    await sluice.worker({ handlers: [job.handle(handler)], ...options }).start();
  }
  await until("all to sleep", async () => {
    const { rows } = await s.sql.query("select from sluice.worker where asleep");
    return rows.length === WORKERS;
  });
}

test("all idle workers start a task each, although not all of them listen", async () => {
  const s = await scene();
  const all = signal();
  let running = 0;
  await crowd(s, async () => {
    if (++running === WORKERS) all.resolve();
    await all.promise;
  });
  const { rows } = await s.sql.query("select from sluice.worker where on_call_since is not null");
  expect(rows.length).toBeLessThan(WORKERS);
  expect(await listening(s.sql)).toBeLessThan(WORKERS);
  const from = performance.now();
  const handles = await Promise.all(Array.from({ length: WORKERS }, () => s.sluice.enqueue(task("job"))));
  for (const handle of handles) await handle.result({ timeoutMs: NEVER_MS / 2 });
  expect(performance.now() - from).toBeLessThan(NEVER_MS / 2);
});

test("a client listens only while it waits for a result", async () => {
  const s = await scene();
  const handle = await s.sluice.enqueue(task("job"));
  expect(await listening(s.sql)).toBe(0);
  const result = handle.result({ timeoutMs: NEVER_MS });
  result.catch(() => {});
  await until("the client to listen", async () => (await listening(s.sql)) === 1);
  await handle.cancel();
  await expect(result).rejects.toMatchObject({ code: "task_cancelled" });
  await until("the client to listen no more", async () => (await listening(s.sql)) === 0);
});

describe("a worker in reserve, with a fake clock", () => {
  afterEach(() => void vi.useRealTimers());

  test("a worker in reserve polls every second, whatever its interval", async () => {
    vi.useFakeTimers();
    let polls = 0;
    const poll = new Poll({
      pollIntervalMs: NEVER_MS,
      permits: new Permits(1),
      listening: () => true,
      asleep: () => true,
      pollMsMax: () => 1_000,
      onPoll: () => void polls++,
    });
    poll.start();
    polls = 0;
    await vi.advanceTimersByTimeAsync(10_000);
    poll.stop();
    expect(polls).toBeGreaterThanOrEqual(10);
    expect(polls).toBeLessThan(15);
  });

  test("a worker in reserve asks for a place on call, and listens once it has one", async () => {
    let [needs, asked] = [0, 0];
    const run = (): Promise<object[]> => Promise.resolve([{ on_call: ++asked === 2, reserve: 3 }]);
    const need = (): (() => void) => {
      needs++;
      return () => void needs--;
    };
    const session = new Session("1", 1e9);
    const post = new OnCall({
      connection: { run } as never,
      listener: { listens: false, connected: true, need },
      current: () => session,
      log: silentLogger,
    });
    post.told({ onCall: true, reserve: 0 });
    expect([needs, post.listening, post.pollMsMax]).toEqual([1, false, Number.POSITIVE_INFINITY]);
    post.told({ onCall: false, reserve: 40 });
    expect([needs, post.listening, post.pollMsMax]).toEqual([0, true, 800]);
    for (const asks of [1, 1, 1, 1, 2]) {
      post.idlePoll();
      await new Promise((resolve) => setImmediate(resolve));
      expect(asked).toBe(asks);
    }
    expect(needs).toBe(1);
  });
});
