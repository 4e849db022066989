import { expect, test } from "vitest";
import { limit, task, type } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { scene, until } from "../flow/scene.js";
import { codeOf } from "./house.js";

const input = type<{ key: string }>();

test("a queue is explained by type and reason, those that hold the most first", async () => {
  const { sluice, sql } = await scene();
  const ordered = task("ordered", { input, queue: "q", order: ({ key }) => key });
  const keyed = task("keyed", {
    input,
    queue: "q",
    limits: [limit("keys", { perKey: 0 }).for(({ key }: { key: string }) => key)],
  });
  const shut = task("shut", { input, queue: "q", concurrency: 0 });
  const plain = task("plain", { input, queue: "q" });
  const elsewhere = task("elsewhere", { input });
  // A worker that serves all of them, and looks at nothing.
  for (const one of [ordered, keyed, shut, plain, elsewhere])
    await sluice.enqueue(one, { key: "first" }, { runAt: new Date(Date.now() + 3_600_000) });
  await sql.query(
    `insert into sluice.worker (id, name, streams, lease_ms, expires_at, connections, capacity_max, capacity_available)
       select 7, 'w7', array_agg(id), 60000, sluice.clock() + interval '1 minute', 1, 5, 3 from sluice.stream`,
  );
  const keys = (count: number) => Array.from({ length: count }, () => ({ key: "a" }));
  for (const [one, count] of [
    [ordered, 2],
    [keyed, 3],
    [shut, 4],
    [plain, 5],
    [elsewhere, 6],
  ] as const)
    await sluice.enqueueMany(one, keys(count));
  await sql.query("select sluice.admit_dirty(100)");

  const explained = await sluice.explainQueue("q");
  const { reasons, ...rest } = explained;
  expect(rest).toEqual({
    queue: "q",
    paused: false,
    workers: { live: 1, leaving: 0, capacity: 5, available: 3, stopped: 0 },
    running: [],
  });
  const first = async (kind: string): Promise<string> =>
    (
      await sql.query<{ id: string }>(
        `select min(t.id)::text as id from sluice.task t join sluice.stream s on s.id = t.stream
           where s.type = $1 and not exists (select from sluice.scheduled c where c.id = t.id)`,
        [kind],
      )
    ).rows[0]!.id;
  const none = { limit: null, slots: null, used: null, more: false };
  expect(
    reasons
      .filter(({ kind }) => kind !== "scheduled")
      .map(({ message: _message, task: _task, ...reason }) => reason),
  ).toEqual([
    { ...none, kind: "next", type: "plain", count: 5 },
    { ...none, kind: "limit", type: "shut", limit: "shut", slots: 0, used: 0, count: 4 },
    { ...none, kind: "limit", type: "keyed", limit: "keys", count: 3 },
    // The first holds its key, and nothing holds it.
    { ...none, kind: "next", type: "ordered", count: 1 },
    { ...none, kind: "order", type: "ordered", count: 1 },
  ]);
  expect(reasons.filter(({ kind }) => kind === "scheduled")).toHaveLength(4);
  const [plainest, , atKeys] = reasons;
  expect(plainest!.message).toBe(`5 of "plain" next in line; one is task ${await first("plain")}`);
  expect(atKeys!.message).toBe(`3 of "keyed" at limit "keys"; one is task ${await first("keyed")}`);

  // One who knows its reason tells the same of itself.
  for (const { kind, task: id } of reasons)
    expect((await sluice.explain(id))!.reasons[0]!.kind).toBe(kind);

  await sluice.pause("q");
  expect(await sluice.explainQueue("q")).toMatchObject({ paused: true });
  const held = (await sluice.explainQueue("q")).reasons.filter(({ kind }) => kind === "paused");
  expect(held).toMatchObject([
    { type: "plain", count: 5 },
    { type: "ordered", count: 1 },
  ]);
  await sluice.resume("q");
  await sql.query("delete from sluice.worker");
  expect(
    (await sluice.explainQueue("q")).reasons.filter(({ kind }) => kind === "noWorker"),
  ).toMatchObject([
    { type: "plain", count: 5 },
    { type: "ordered", count: 1 },
  ]);
});

test("what runs is counted by type", async () => {
  const s = await scene({ logger: silentLogger });
  const t = task("runs", { input });
  let begun = 0;
  await s.worker({
    handlers: [
      t.handle((_input, { signal }) => {
        begun++;
        return new Promise<void>((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error)),
        );
      }),
    ],
  });
  await s.sluice.enqueueMany(t, [{ key: "a" }, { key: "b" }]);
  await until("both to run", () => begun === 2);
  expect((await s.sluice.explainQueue("default")).running).toEqual([{ type: "runs", count: 2 }]);
});

test("a queue that is not there is refused, and so is a bad name", async () => {
  const { sluice } = await scene();
  expect(await codeOf(() => sluice.explainQueue("nowhere"))).toBe("unknown_queue");
  expect(await codeOf(() => sluice.explainQueue(""))).toBe("invalid_name");
});
