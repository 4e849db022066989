import { expect, test } from "vitest";
import { task, type WorkerSummary } from "../../src/index.js";
import { scene, signal } from "../flow/scene.js";

test("workers.list returns the load, the lease and the served types of a live worker", async () => {
  const s = await scene();
  const [begun, release] = [signal(), signal()];
  const slow = task("slow", { queue: "mail" });
  const handler = slow.handle(async () => {
    begun.resolve();
    await release.promise;
  });
  await s.worker({ handlers: [handler], name: "busy", maxConcurrentTasks: 3, leaseMs: 15_000 });
  await s.sluice.enqueue(slow);
  await begun.promise;
  const [busy] = (await s.sluice.workers.list()) as [WorkerSummary];
  expect(busy).toMatchObject({
    name: "busy",
    state: "live",
    capacity: 3,
    inUse: 1,
    serves: [{ queue: "mail", type: "slow" }],
    leaseMs: 15_000,
  });
  expect(busy.leaseUntil.getTime() - busy.heardAt.getTime()).toBe(15_000);
  expect(busy.leaseUntil > busy.at).toBe(true);
  release.resolve();
});

test("workers.list tells lost, silent and draining workers apart, by name", async () => {
  const s = await scene();
  // Workers of other processes, of which only the rows are left.
  await s.sql.query(`insert into sluice.worker
      (id, name, streams, lease_ms, expires_at, connections, capacity_max, capacity_available, memory_bytes, draining,
       pressure, pressure_reasons)
    select x.id, x.name, '{}', 30000, sluice.clock() + x.left_ms * interval '1 ms', 9, 50, 4, 1048576, x.draining,
      'stopped', '{payload}'
    from (values (3, 'retiring', 25000, true), (1, 'gone', -1000, false), (2, 'mute', 10000, false))
      x(id, name, left_ms, draining)`);
  const listed = await s.sluice.workers.list();
  expect(listed.map(({ name, state }) => [name, state])).toEqual([
    ["gone", "lost"],
    ["mute", "silent"],
    ["retiring", "draining"],
  ]);
  expect(listed[1]).toMatchObject({
    id: "2",
    available: 4,
    inUse: 0,
    memoryBytes: 1_048_576,
    connections: 9,
    pressure: { state: "stopped", reasons: ["payload"] },
    serves: [],
  });
  expect(await s.sluice.workers.list({ limit: 1 })).toMatchObject([{ name: "gone" }]);
  await expect(s.sluice.workers.list({ limit: 0 })).rejects.toMatchObject({ code: "invalid_option" });
});
