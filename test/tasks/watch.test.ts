import { describe, expect, test } from "vitest";
import { Client, fixed, task, type, type TaskState, type TaskStatus } from "../../src/index.js";
import { NOTIFICATION } from "../../src/postgres/listen.js";
import { watchTask } from "../../src/tasks/watch.js";
import { ended, scene, signal, until } from "../flow/scene.js";

const codeOf = (work: () => Promise<unknown>): Promise<unknown> =>
  work().then(
    () => "none",
    (e: { code?: string }) => e.code,
  );

describe("handle.watch()", () => {
  test("watch yields the status now and at every change, and ends with the task", async () => {
    const s = await scene();
    const finish = signal();
    const job = task("job", { output: type<{ sent: number }>() });
    const handle = await s.sluice.enqueue(job);
    const seen: TaskStatus[] = [];
    for await (const status of handle.watch()) {
      seen.push(status);
      if (status.state === "ready") {
        await s.worker({ handlers: [job.handle(() => finish.promise.then(() => ({ sent: 3 })))] });
        await until("it to run", async () => (await handle.status())?.state === "running");
      }
      if (status.state === "running") finish.resolve();
    }
    expect(seen.map(({ state }) => state)).toEqual(["ready", "running", "succeeded"]);
    expect(seen[1]).toMatchObject({ id: handle.id, type: "job", attempt: 1, finishedAt: null });
    expect(seen[2]).toMatchObject({ outcome: { sent: 3 } });
  });

  test("watch shows a retry as a new status, and a failure as the last", async () => {
    const s = await scene();
    const job = task("job", { retry: { attempts: 2, backoff: fixed(600) } });
    const handle = await s.sluice.enqueue(job);
    await s.worker({
      handlers: [
        job.handle(() => {
          throw new Error("no");
        }),
      ],
    });
    const seen: [TaskState, number][] = [];
    for await (const { state, attempt } of handle.watch()) seen.push([state, attempt]);
    expect(seen).toContainEqual(["scheduled", 1]);
    expect(seen.at(-1)).toEqual(["failed", 2]);
  });

  test("watch yields an ended task once, refuses an unknown task and a wrong option, and ends with its signal", async () => {
    const s = await scene();
    const job = task("job");
    const handle = await s.sluice.enqueue(job);
    const giveUp = new AbortController();
    const watching = (async () => {
      for await (const { state } of handle.watch({ signal: giveUp.signal }))
        if (state === "ready") giveUp.abort(new Error("seen enough"));
    })();
    await expect(watching).rejects.toThrow("seen enough");
    await s.worker({ handlers: [job.handle(() => {})] });
    await ended(s, 1);
    const states: TaskState[] = [];
    for await (const { state } of handle.watch()) states.push(state);
    expect(states).toEqual(["succeeded"]);
    expect(await codeOf(() => s.sluice.task("424242").watch().next())).toBe("result_not_kept");
    expect(() => handle.watch({ timeoutMs: 5 } as never)).toThrow(/watch has no option/);
    expect(() => handle.watch({ signal: 5 as never })).toThrow(/AbortSignal/);
  });

  test("watch ends with the code closed when the client closes", async () => {
    const s = await scene();
    const client = await Client.connect({ url: s.url, migrate: false });
    const watching = client.task((await s.sluice.enqueue(task("job"))).id).watch();
    await watching.next();
    await client.close();
    expect(await codeOf(() => watching.next())).toBe("closed");
  });
});

/** A database in memory with one task, and a listener that the test rings. */
function fake(stateAt: (looks: number) => TaskState) {
  const made = { looks: 0, awaited: 0, rings: new Map<string, () => void>(), needed: 0 };
  const row = { id: "7", type: "t", queue: "default", priority: 0, attempt: 1, attempts_max: 1, outcome: null };
  const times = { created_at: "2026-01-01T00:00:00Z", run_at: null, started_at: null, finished_at: null };
  const told = { last_error: null, progress: null };
  const run = async ({ name }: { name: string }): Promise<object[]> => {
    if (name === "await") return [{ id: String(++made.awaited) }];
    return [{ ...row, ...times, ...told, state: stateAt(++made.looks) }];
  };
  const listener = {
    onPayload(payload: string, ring: () => void) {
      made.rings.set(payload, ring);
      return () => void made.rings.delete(payload);
    },
    need() {
      made.needed++;
      return () => void made.needed--;
    },
  };
  return { made, services: { db: { run } as never, listener: listener as never } };
}

test("watch polls at a growing interval, yields nothing while nothing changes, and registers once", async () => {
  const { made, services } = fake((looks) => (looks < 4 ? "running" : "succeeded"));
  const seen: string[] = [];
  const beganMs = performance.now();
  for await (const { state } of watchTask(services, "7", null)) seen.push(`${state} at ${made.looks}`);
  expect(seen).toEqual(["running at 1", "succeeded at 4"]);
  // 100, 150 and 225 ms.
  expect(performance.now() - beganMs).toBeGreaterThan(450);
  expect(made.awaited).toBe(1);
  expect([made.rings.size, made.needed]).toEqual([0, 0]);
});

test("the notification of a task's end wakes a watch between two polls", async () => {
  let over = false;
  const { made, services } = fake(() => (over ? "succeeded" : "running"));
  const watching = watchTask(services, "7", null);
  await watching.next();
  const next = watching.next();
  // The pause after the sixth poll takes 760 ms: long enough to tell a poll from a notification.
  await until("some polls", () => made.looks === 6);
  const [looks, rungMs] = [made.looks, performance.now()];
  over = true;
  made.rings.get(`${NOTIFICATION.done}:7`)!();
  expect((await next).value).toMatchObject({ state: "succeeded" });
  expect(made.looks).toBe(looks + 1);
  expect(performance.now() - rungMs).toBeLessThan(500);
  await watching.return();
});

test("a watch that the consumer leaves stops listening", async () => {
  const { made, services } = fake(() => "running");
  for await (const _ of watchTask(services, "7", null)) break;
  expect([made.rings.size, made.needed]).toEqual([0, 0]);
});
