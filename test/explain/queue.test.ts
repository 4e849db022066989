import { expect, test } from "vitest";
import { limit, task, type, workflow } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { scene, until } from "../flow/scene.js";
import { codeOf } from "../client/house.js";

const input = type<{ key: string }>();

test("explainQueue groups tasks by type and reason, largest groups first", async () => {
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
  // A worker that serves all types and claims nothing. Its heartbeat is in the future, so it is never silent.
  for (const one of [ordered, keyed, shut, plain, elsewhere])
    await sluice.enqueue(one, { key: "first" }, { runAt: new Date(Date.now() + 3_600_000) });
  await sql.query(
    `insert into sluice.worker (id, name, streams, lease_ms, expires_at, connections, capacity_max, capacity_available)
       select 7, 'w7', array_agg(id), 60000, sluice.clock() + interval '61 minutes', 1, 5, 3 from sluice.stream`,
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
    workers: { live: 1, leaving: 0, silent: 0, stopped: 0, capacity: 5, available: 3 },
    running: [],
    reasonsLeft: 0,
    at: expect.any(Date) as Date,
  });
  const first = async (kind: string): Promise<string> =>
    (
      await sql.query<{ id: string }>(
        `select min(t.id)::text as id from sluice.task t join sluice.stream s on s.id = t.stream
           where s.type = $1 and not exists (select from sluice.scheduled c where c.id = t.id)`,
        [kind],
      )
    ).rows[0]!.id;
  const none = { limit: null, slots: null, used: null, keys: null, until: null, more: false };
  expect(
    reasons.filter(({ kind }) => kind !== "scheduled").map(({ message: _message, task: _task, ...reason }) => reason),
  ).toEqual([
    { ...none, kind: "next", type: "plain", count: 5 },
    { ...none, kind: "limit", type: "shut", limit: "shut", slots: 0, used: 0, count: 4 },
    { ...none, kind: "limit", type: "keyed", limit: "keys", keys: 1, count: 3 },
    // The first holds its key, and nothing holds it.
    { ...none, kind: "next", type: "ordered", count: 1 },
    { ...none, kind: "order", type: "ordered", keys: 1, count: 1 },
  ]);
  expect(reasons.filter(({ kind }) => kind === "scheduled")).toHaveLength(4);
  const [plainest, , atKeys] = reasons;
  expect(plainest!.message).toBe(`5 "plain" next in line; for example task ${await first("plain")}`);
  expect(atKeys!.message).toBe(`3 "keyed" at limit "keys" (1 key); for example task ${await first("keyed")}`);

  // explain of a single task gives the same reason.
  for (const { kind, task: id } of reasons) expect((await sluice.explain(id))!.reasons[0]!.kind).toBe(kind);

  await sluice.pause("q");
  expect(await sluice.explainQueue("q")).toMatchObject({ paused: true });
  const held = (await sluice.explainQueue("q")).reasons.filter(({ kind }) => kind === "paused");
  expect(held).toMatchObject([
    { type: "plain", count: 5 },
    { type: "ordered", count: 1 },
  ]);
  await sluice.resume("q");
  await sql.query("delete from sluice.worker");
  expect((await sluice.explainQueue("q")).reasons.filter(({ kind }) => kind === "noWorker")).toMatchObject([
    { type: "plain", count: 5 },
    { type: "ordered", count: 1 },
  ]);
});

test("explainQueue counts every task under the reason that explain gives for it", async () => {
  const s = await scene({ logger: silentLogger });
  const { sluice, sql } = s;
  const queue = "q";
  const keys = limit("some", { perKey: 2 }).for(({ key }: { key: string }) => key);
  const ordered = task("ordered", { input, queue, order: ({ key }) => key });
  const keyed = task("keyed", { input, queue, limits: [keys] });
  const group = task("group", { input, queue, limits: [limit("group", { total: 1 })] });
  const shut = task("shut", { input, queue, concurrency: 0 });
  const plain = task("plain", { input, queue });
  const nobody = task("nobody", { input, queue, limits: [keys] });
  const failing = task("failing", {
    input,
    queue,
    retry: { attempts: 1 },
    order: { key: ({ key }) => key, scope: "f", onFailure: "block" },
  });
  const outer = task("outer", { input, queue });
  const fan = workflow("fan", { input: type<{ items: { key: string }[] }>() }, (w, given) => {
    w.each("each", plain, given.items, (one) => one, { window: 2 });
  });
  const some = (count: number, key = "a") => Array.from({ length: count }, () => ({ key }));
  // What only a worker can make: a failure that blocks its key, and a task that sleeps.
  await sluice.enqueueMany(failing, some(3));
  const sleeper = await sluice.enqueue(outer, { key: "a" });
  const hand = await s.worker({
    handlers: [
      failing.handle(() => Promise.reject(new Error("no"))),
      outer.handle(async (_input, ctx) => void (await ctx.map("m", some(2), plain))),
    ],
    pollIntervalMs: 20,
  });
  await until("both", async () => {
    const counts = await sluice.counts();
    const reason = (await sleeper.explain())!.reasons[0];
    return counts.failed === 1 && reason?.kind === "children";
  });
  await hand.stop();

  const seen = new Set<string>();
  /** Every task is counted once, by the reason that explain names first. */
  const agree = async (): Promise<void> => {
    const { reasons } = await sluice.explainQueue(queue);
    const counted = new Map(reasons.map((r) => [`${r.type} ${r.kind} ${r.limit}`, r.count]));
    const told = new Map<string, number>();
    const { rows } = await sql.query<{ id: string }>(
      "select id::text from sluice.task_state where queue = $1 and state in ('scheduled', 'waiting', 'ready')",
      [queue],
    );
    for (const { id } of rows) {
      const { type: of, reasons: all } = (await sluice.explain(id))!;
      const [reason] = all;
      const at = `${of} ${reason!.kind} ${reason!.kind === "limit" ? reason!.limit : null}`;
      told.set(at, (told.get(at) ?? 0) + 1);
      seen.add(reason!.kind);
    }
    expect(counted).toEqual(told);
    for (const { kind, task: id } of reasons) expect((await sluice.explain(id))!.reasons[0]!.kind).toBe(kind);
  };

  await agree();
  for (const one of [ordered, keyed, group, shut, plain, nobody])
    await sluice.enqueueMany(one, [...some(4), ...some(1, "b")]);
  await agree();
  // It serves all types but one, claims nothing, and its heartbeat is in the future, so it is not silent.
  await sql.query(
    `insert into sluice.worker (id, name, streams, lease_ms, expires_at, connections, capacity_max, capacity_available)
     select 7, 'w7', array_agg(id), 60000, sluice.clock() + interval '61 minutes', 1, 5, 3 from sluice.stream where type <> 'nobody'`,
  );
  await agree();
  await sql.query("select sluice.admit_dirty(100)");
  await agree();
  await sql.query("select sluice.keep_lanes(1000)");
  await sluice.enqueueMany(nobody, some(2));
  await agree();
  await sluice.limits.set("some", { perKey: 1 });
  await agree();
  await sluice.limits.set("some", { perKey: 0 });
  await sluice.limits.set("group", { total: 0 });
  await agree();
  // Slots that were returned and not used yet.
  const held = (await sluice.explainQueue(queue)).reasons.find((r) => r.kind === "order")!;
  const { holder } = (await sluice.explain(held.task))!.reasons[0] as { holder: { task: string } };
  await sluice.task(holder.task).cancel();
  await agree();
  const later = await sluice.enqueue(plain, { key: "a" }, { delayMs: 3_600_000 });
  const due = await sluice.enqueue(plain, { key: "a" }, { delayMs: 3_600_000 });
  await sql.query("update sluice.scheduled set run_at = sluice.clock() where id = $1", [due.id]);
  await agree();
  await sql.query(
    `with gone as (delete from sluice.scheduled where id = $1 returning id, attempt)
     insert into sluice.suspect (id, stream, attempt) select g.id, t.stream, g.attempt from gone g join sluice.task t on t.id = g.id`,
    [later.id],
  );
  await sql.query("update sluice.worker set capacity_available = 0");
  await agree();
  const run = await sluice.start(fan, { items: some(5) });
  await sql.query("select sluice.admit_dirty(100)");
  await agree();
  await run.pause();
  await agree();
  await sql.query("update sluice.worker set pressure = 'stopped', pressure_reasons = '{memory}'");
  await agree();
  await sql.query("update sluice.worker set expires_at = sluice.clock() + interval '30 seconds'");
  await agree();
  await sluice.pause(queue);
  await agree();
  expect([...seen].toSorted()).toEqual([
    "blocked",
    "busy",
    "children",
    "limit",
    "next",
    "noWorker",
    "order",
    "paused",
    "pressure",
    "scheduled",
    "silent",
    "suspect",
    "window",
  ]);
});

test("explainQueue counts running tasks by type", async () => {
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

test("explainQueue refuses an unknown queue and an invalid name", async () => {
  const { sluice } = await scene();
  expect(await codeOf(() => sluice.explainQueue("nowhere"))).toBe("unknown_queue");
  expect(await codeOf(() => sluice.explainQueue(""))).toBe("invalid_name");
});
