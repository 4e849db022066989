import { expect, test } from "vitest";
import { limit, task, type } from "../../src/index.js";
import { scene, signal } from "../flow/scene.js";

test("queues.list counts the tasks of each queue by state, of all its types", async () => {
  const s = await scene();
  const [begun, release] = [signal(), signal()];
  const slow = task("slow", { queue: "mail" });
  const handler = slow.handle(async () => {
    begun.resolve();
    await release.promise;
  });
  await s.worker({ handlers: [handler], maxConcurrentTasks: 1 });
  const first = await s.sluice.enqueue(slow);
  await begun.promise;
  const ordered = task("ordered", { queue: "mail", input: type<number>(), order: (n) => n % 2 });
  const full = task("full", { queue: "mail", limits: [limit("none", { total: 0 })] });
  await s.sluice.enqueueMany(slow, [undefined, undefined]);
  await s.sluice.enqueueMany(ordered, [1, 2, 3, 4, 5]);
  await s.sluice.enqueueMany(full, [undefined]);
  await s.sluice.enqueue(slow, undefined, { delayMs: 60_000 });
  const idle = await s.sluice.enqueue(task("idle", { queue: "bank" }));
  await idle.cancel();
  const [bank, mail, ...others] = await s.sluice.queues.list();
  expect(others).toEqual([]);
  const none = { count: 0, more: false };
  expect(bank).toMatchObject({
    name: "bank",
    tasks: { scheduled: none, waiting: none, ready: none, running: none },
    oldestAt: null,
    workers: 0,
  });
  expect(mail).toMatchObject({ name: "mail", paused: false, workers: 1 });
  const { scheduled, waiting, ready, running } = mail!.tasks;
  expect([scheduled.count, running.count, waiting.count + ready.count]).toEqual([1, 1, 8]);
  expect(waiting.count).toBeGreaterThanOrEqual(1);
  // The running task is older, but it has started.
  expect(mail!.oldestAt! > (await first.status())!.createdAt).toBe(true);
  release.resolve();
});

test("queues.list stops counting a large backlog, and reports the age of its oldest task", async () => {
  const s = await scene();
  const many = task("many", { queue: "mail" });
  await s.sluice.enqueueMany(
    many,
    Array.from({ length: 1_200 }, () => undefined),
  );
  await s.sluice.enqueueMany(task("few", { queue: "mail" }), [undefined, undefined]);
  await s.sql.query("update sluice.task set created_at = '2020-01-01Z' where id = (select min(id) from sluice.task)");
  const [mail] = await s.sluice.queues.list();
  expect(mail!.tasks.ready).toEqual({ count: 1_002, more: true });
  expect(mail!.tasks.waiting).toEqual({ count: 0, more: false });
  expect(mail!.oldestAt).toEqual(new Date("2020-01-01Z"));
});

test("queues.list counts a task for later from its time on, and pages by name", async () => {
  const s = await scene();
  await s.sluice.enqueue(task("a", { queue: "a" }));
  await s.sluice.enqueue(task("b", { queue: "b" }));
  await s.sql.query("update sluice.task set created_at = '2020-01-01Z', due_at = '2021-01-01Z'");
  const [first] = await s.sluice.queues.list({ limit: 1 });
  expect(first).toMatchObject({ name: "a", oldestAt: new Date("2021-01-01Z") });
  expect((await s.sluice.queues.list({ after: "a" })).map(({ name }) => name)).toEqual(["b"]);
  await expect(s.sluice.queues.list({ limit: 1_001 })).rejects.toMatchObject({ code: "invalid_option" });
  await expect(s.sluice.queues.list({ max: 1 } as never)).rejects.toMatchObject({ code: "invalid_option" });
});
