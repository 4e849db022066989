import { expect, onTestFinished, test } from "vitest";
import { limit, Sluice, task, type, workflow, type TaskHandler } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { until } from "../flow/scene.js";
import { numbers, workflowScene } from "../client/workflow-scene.js";

// Nothing happens in time by polling: what these tests see, the bell has brought.
const deaf = { pollIntervalMs: 60_000 };
const patience = { timeoutMs: 20_000 };
const once = { attempts: 1 };

const list = task("list", {
  input: type<number>(),
  output: type<{ users: { user: string; n: number }[] }>(),
});
const perUser = limit("per-user", { perKey: 2 });
const keyed = task("keyed", {
  input: type<{ user: string; n: number }>(),
  output: type<number>(),
  limits: [{ limit: perUser, key: ({ user }) => user }],
  order: { key: ({ user }) => user, scope: "users" },
  retry: once,
});
const flow = workflow("keyed", { input: type<number>() }, (w, n) => {
  const users = w.task("list", list, n).users;
  const all = w.each("all", keyed, users, (user) => user, { window: 4 });
  const last = w.task("last", keyed, { user: "last", n: all.counts.total });
  return { results: all.results, last };
});
const lister = list.handle((n) => ({
  users: numbers(n).map((i) => ({ user: `user ${i % 3}`, n: i })),
})) as TaskHandler;

test("a settle by a worker that does not know the next type loses nothing, and the bell calls one that does, without a poll", async () => {
  const s = await workflowScene();
  const other = await Sluice.connect({ url: s.url, migrate: false, logger: silentLogger });
  const seen = new Map<string, number[]>();
  let running = 0;
  let peak = 0;
  const knows = other.worker({
    ...deaf,
    handlers: [
      keyed.handle(async ({ user, n }) => {
        peak = Math.max(peak, ++running);
        seen.set(user, [...(seen.get(user) ?? []), n]);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        return n;
      }),
    ],
  });
  await knows.start();
  onTestFinished(() => other.close({ graceMs: 0 }));
  await until("it to sleep", async () => {
    const { rows } = await s.sql.query("select from sluice.worker where asleep");
    return rows.length === 1;
  });
  await s.worker({ ...deaf, handlers: [lister] });
  const run = await s.sluice.start(flow, 30);
  expect(await run.result(patience)).toEqual({ results: numbers(30), last: 30 });
  // An order key runs one at a time, in the order of the items.
  expect(peak).toBeLessThanOrEqual(3);
  for (const user of [0, 1, 2])
    expect(seen.get(`user ${user}`)).toEqual(numbers(30).filter((n) => n % 3 === user));
});

test("nobody knows the next type: the run waits, and goes on with the first worker that does", async () => {
  const s = await workflowScene();
  await s.worker({ pollIntervalMs: 20, handlers: [lister] });
  const run = await s.sluice.start(flow, 3);
  await until("the node to wait for a placer", async () => {
    const { rows } = await s.sql.query("select from sluice.workflow_unplaced where in_code");
    return rows.length === 1;
  });
  await s.worker({ pollIntervalMs: 20, handlers: [keyed.handle(({ n }) => n)] });
  expect(await run.result(patience)).toEqual({ results: [0, 1, 2], last: 3 });
});

test("a node that somebody had in hand and died with is placed by another", async () => {
  const s = await workflowScene();
  const run = await s.sluice.start(flow, 3);
  await s.worker({ pollIntervalMs: 20, handlers: [lister] });
  await until("the node to wait for a placer", async () => {
    const { rows } = await s.sql.query("select from sluice.workflow_unplaced where in_code");
    return rows.length === 1;
  });
  const dying = await s.sql.connect();
  await dying.query("begin");
  await dying.query("select from sluice.workflow_unplaced for update");
  const begun: number[] = [];
  await s.worker({
    pollIntervalMs: 20,
    handlers: [keyed.handle(({ n }) => (begun.push(n), n))],
  });
  expect(begun).toEqual([]);
  dying.release(new Error("it is gone"));
  expect(await run.result(patience)).toEqual({ results: [0, 1, 2], last: 3 });
  expect(begun.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
});

test("a key function that throws fails the node with a reason, once, and the worker goes on without a poll", async () => {
  const s = await workflowScene();
  let asked = 0;
  const broken = task("broken", {
    input: type<{ user: string | null }>(),
    limits: [
      {
        limit: perUser,
        key: ({ user }) => {
          asked++;
          return user!.toUpperCase();
        },
      },
    ],
    retry: once,
  });
  const bad = workflow("bad", { input: type<number>() }, (w, n) => {
    const listed = w.task("list", list, n);
    // The first user is there, what comes after the last is not.
    const one = w.task("one", broken, { user: listed.users[0]!.user });
    w.task("none", broken, { user: listed.users[99]!.user });
    return one;
  });
  const worker = await s.worker({
    ...deaf,
    handlers: [lister, broken.handle(({ user }) => user)],
  });
  const run = await s.sluice.start(bad, 1);
  await expect(run.result(patience)).rejects.toMatchObject({ code: "workflow_failed" });
  const { rows } = await s.sql.query<{ state: string; outcome: { code: string; message: string } }>(
    "select state, outcome from sluice.workflow_progress where run = $1 and name = 'none'",
    [run.id],
  );
  expect(rows[0]).toMatchObject({ state: "failed", outcome: { code: "input_invalid" } });
  expect(rows[0]!.outcome.message).toContain("limit per-user could not be decided");
  expect(asked).toBe(2);
  expect(worker.status().completed).toBe(2);
});

test("many items that need no code are created by whoever hears of them, without a poll", async () => {
  const s = await workflowScene();
  const plain = task("plain", { input: type<number>(), output: type<number>() });
  const wide = workflow("wide", { input: type<number>() }, (w, n) => {
    const users = w.task("list", list, n).users;
    return w.each("all", plain, users, (user) => user.n, { window: 100 }).counts;
  });
  await s.worker({ ...deaf, handlers: [lister, plain.handle((n) => n)] });
  const run = await s.sluice.start(wide, 2_500);
  expect(await run.result(patience)).toMatchObject({ total: 2_500, succeeded: 2_500 });
});

// A schema that looks: even numbers only.
const even = {
  "~standard": {
    version: 1 as const,
    vendor: "test",
    validate: (value: unknown) =>
      typeof value === "number" && value % 2 === 0
        ? { value }
        : { issues: [{ message: "must be even" }] },
  },
};

test("an input that was rendered and is not what the task takes fails for good, an enqueued one is tried again", async () => {
  const s = await workflowScene();
  const strict = task("strict", { input: type<number | null>(), retry: { attempts: 5 } });
  const deployed = task("strict", { input: even, retry: { attempts: 5 } });
  const odd = workflow("odd", { input: type<number>() }, (w, n) => {
    const listed = w.task("list", list, n);
    return w.task("strict", strict, listed.users[1]!.n);
  });
  const run = await s.sluice.start(odd, 3);
  const plain = await s.sluice.enqueue(strict, 1);
  let ran = 0;
  await s.worker({ pollIntervalMs: 20, handlers: [lister, deployed.handle(() => ran++)] });
  const failure = await run.result(patience).catch((e: unknown) => e as Error);
  expect(failure).toMatchObject({ code: "workflow_failed" });
  const { rows } = await s.sql.query<{ attempt: number; outcome: object }>(
    "select d.attempt, d.outcome from sluice.done d join sluice.workflow_node n on n.task = d.id where d.state = 'f'",
  );
  expect(rows).toMatchObject([
    {
      attempt: 1,
      outcome: { code: "input_invalid", message: "the input is not valid: must be even" },
    },
  ]);
  await until("the plain one to be tried again", async () => {
    const status = await plain.status();
    return status?.state === "scheduled" && status.attempt === 1;
  });
  expect(ran).toBe(0);
});
