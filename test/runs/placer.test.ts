import { expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/core/ports.js";
import type { Schema } from "../../src/core/schema.js";
import { fixed, limit, Sluice, task, type, workflow, type Run, type TaskHandler } from "../../src/index.js";
import { until, type Scene } from "../flow/scene.js";
import { numbers, workflowScene } from "./scene.js";

// Polling is too slow for these tests: what they see comes from rings.
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

test("a worker that does not know the next type settles its task, and a ring wakes one that does, without a poll", async () => {
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
  for (const user of [0, 1, 2]) expect(seen.get(`user ${user}`)).toEqual(numbers(30).filter((n) => n % 3 === user));
});

test("a run whose next type no worker knows waits, and continues with the first worker that does", async () => {
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

test("a node locked by a placer that died is placed by another", async () => {
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

test("a key function that throws fails its node once, with a reason, and the worker continues without a poll", async () => {
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
    // The first user exists, the hundredth does not.
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
  expect(rows[0]!.outcome.message).toContain("limit per-user could not be computed");
  expect(rows[0]!.outcome.message).toContain("Cannot read properties of null");
  expect(asked).toBe(2);
  expect(worker.status().completed).toBe(2);
});

test("an item whose key function throws fails its fan-out once, and the worker continues without a poll", async () => {
  const s = await workflowScene();
  const asked: number[] = [];
  const picky = task("picky", {
    input: type<number>(),
    order: (n) => {
      asked.push(n);
      if (n === 2) throw new Error("not two");
      return String(n);
    },
    retry: once,
  });
  const bad = workflow("bad", { input: type<number>() }, (w, n) => {
    const { users } = w.task("list", list, n);
    return w.each("all", picky, users, (user) => user.n, { window: 9 }).counts;
  });
  await s.worker({ ...deaf, handlers: [lister, picky.handle(() => 1)] });
  const run = await s.sluice.start(bad, 4);
  await expect(run.result(patience)).rejects.toMatchObject({
    code: "workflow_failed",
    message: expect.stringMatching(/node "all": .*\(item 2\)$/) as string,
    details: { nodes: [{ node: "all", error: { code: "input_invalid" } }] },
  });
  expect(asked).toEqual([0, 1, 2]);
});

test("a large fan-out that needs no code is created by any worker that is notified, without a poll", async () => {
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

// A schema that validates: even numbers only.
const even = {
  "~standard": {
    version: 1 as const,
    vendor: "test",
    validate: (value: unknown) =>
      typeof value === "number" && value % 2 === 0 ? { value } : { issues: [{ message: "must be even" }] },
  },
};

test("an invalid rendered input fails its node without a retry, and an invalid enqueued input is retried", async () => {
  const s = await workflowScene();
  // The second attempt does not start before the test has checked the first.
  const retry = { attempts: 5, backoff: fixed(60_000) };
  const strict = task("strict", { input: type<number | null>(), retry });
  const deployed = task("strict", { input: even, retry });
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
    "select d.attempt, d.outcome from sluice.done d join sluice.workflow_node n on n.task = d.id where d.state = 'failed'",
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

const one = workflow("one", { input: type<{ user: string; n: number }>() }, (w, input) => w.task("one", keyed, input));

/** Declares the workflow. Workers place its runs, because a start by name cannot. */
async function named(s: Scene, ...users: string[]): Promise<Run[]> {
  await s.sluice.start(one, { user: "first", n: 0 });
  const runs: Run[] = [];
  for (const user of users) runs.push(await s.sluice.start("one", { user, n: 1 }));
  return runs;
}

/** Something happens whenever a task of this user is inserted. */
async function whenInserted({ sql }: Scene, user: string, what: string): Promise<void> {
  await sql.query(`create sequence sluice.faults; create function sluice.fault() returns trigger language plpgsql as
    $f$ begin if new.input ->> 'user' = '${user}' then ${what}; end if; return new; end $f$;
    create trigger fault before insert on sluice.task for each row execute function sluice.fault()`);
}

test("a node that cannot be placed does not stop other nodes, and fails after ten tries", async () => {
  const s = await workflowScene();
  await whenInserted(s, "bad", "raise exception using errcode = 'XX000', message = 'no luck'");
  const [bad, ...good] = await named(s, "bad", "a", "b", "c");
  await s.worker({ pollIntervalMs: 20, handlers: [keyed.handle(({ n }) => n)] });
  for (const run of good) expect(await run.result(patience)).toBe(1);
  const { rows } = await s.sql.query<{ tries: number }>("select tries from sluice.workflow_unplaced where run = $1", [
    bad!.id,
  ]);
  expect(rows[0]!.tries).toBeGreaterThan(0);
  await s.sql.query("update sluice.workflow_unplaced set tries = 9, due_at = 'epoch'");
  await expect(bad!.result(patience)).rejects.toMatchObject({
    code: "workflow_failed",
    message: expect.stringContaining("its tasks could not be created in 10 tries; the last error: no luck") as string,
    details: { nodes: [{ error: { code: "XX000" } }] },
  });
});

test("a connection lost while a node is placed does not count as a try", async () => {
  const s = await workflowScene();
  const once_ = "if nextval('sluice.faults') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if";
  await whenInserted(s, "cut", once_);
  const [run] = await named(s, "cut");
  await s.sql.query("update sluice.workflow_unplaced set tries = 9, due_at = 'epoch'");
  await s.worker({ pollIntervalMs: 20, handlers: [keyed.handle(({ n }) => n)] });
  expect(await run!.result(patience)).toBe(1);
  const { rows } = await s.sql.query("select last_value::int as n from sluice.faults");
  expect(rows).toEqual([{ n: 2 }]);
});

/** A `keyed` that is deployed with a schema of its own. */
function keyedWith(check: (value: { user: string; n: number }) => unknown): TaskHandler {
  const validate = check as () => never;
  const input: Schema<{ user: string; n: number }> = {
    "~standard": { version: 1, vendor: "test", validate },
  };
  return task("keyed", {
    input,
    output: type<number>(),
    limits: [{ limit: perUser, key: ({ user }) => user }],
    order: { key: ({ user }) => user, scope: "users" },
    retry: once,
  }).handle(({ n }) => n);
}

/** The warnings of a worker. */
async function loudWorker(s: Scene, handler: TaskHandler): Promise<object[]> {
  const warned: object[] = [];
  const warn = (message: string, facts?: object): void => void warned.push({ message, ...facts });
  const sluice = await Sluice.connect({
    url: s.url,
    migrate: false,
    logger: { ...silentLogger, warn },
  });
  onTestFinished(() => sluice.close({ graceMs: 0 }));
  await sluice.worker({ pollIntervalMs: 20, handlers: [handler] }).start();
  return warned;
}

async function triesOf({ sql }: Scene, run: Run): Promise<number | undefined> {
  const text = "select tries from sluice.workflow_unplaced where run = $1";
  return (await sql.query<{ tries: number }>(text, [run.id])).rows[0]?.tries;
}

const lastTry = "update sluice.workflow_unplaced set tries = 9, due_at = 'epoch'";

test("a node whose schema never answers is postponed and counted, and other nodes are placed meanwhile", async () => {
  const s = await workflowScene();
  const [hung, other, ...good] = await named(s, "hung", "hung", "a", "b");
  const handler = keyedWith((value) => (value.user === "hung" ? new Promise(() => {}) : Promise.resolve({ value })));
  const warned = await loudWorker(s, handler);
  for (const run of good) expect(await run.result(patience)).toBe(1);
  await until("both to be counted", async () => {
    const tries = [await triesOf(s, hung!), await triesOf(s, other!)];
    return tries.every((n) => n! > 0);
  });
  expect(warned).toContainEqual({
    message: "the tasks of a run could not be created",
    error: expect.stringContaining("the schema did not finish within") as string,
  });
  const [late] = await named(s, "late");
  expect(await late!.result(patience)).toBe(1);
  await s.sql.query(lastTry);
  for (const run of [hung!, other!])
    await expect(run.result(patience)).rejects.toMatchObject({
      code: "workflow_failed",
      details: { nodes: [{ error: { code: "timeout" } }] },
    });
});

test("a fan-out whose schema never answers is postponed and counted, and other nodes are placed meanwhile", async () => {
  const s = await workflowScene();
  const fan = workflow(
    "fan",
    { input: type<{ user: string; n: number }[]>() },
    (w, users) => w.each("all", keyed, users, (user) => user, { window: 9 }).counts,
  );
  await s.sluice.start(fan, [{ user: "known", n: 1 }]);
  const hung = await s.sluice.start("fan", [
    { user: "a", n: 1 },
    { user: "hung", n: 1 },
  ]);
  const handler = keyedWith((value) => (value.user === "hung" ? new Promise(() => {}) : Promise.resolve({ value })));
  await s.worker({ pollIntervalMs: 20, handlers: [handler] });
  await until("it to be counted", async () => (await triesOf(s, hung))! > 0);
  const [good] = await named(s, "good");
  expect(await good!.result(patience)).toBe(1);
  await s.sql.query(lastTry);
  await expect(hung.result(patience)).rejects.toMatchObject({
    message: expect.stringMatching(/the schema did not finish within .*\(item 1\)/) as string,
  });
});

test("an error while a node is placed counts as a try and not as an outage, and stops no other node", async () => {
  const s = await workflowScene();
  const [bad, ...good] = await named(s, "bad", "a", "b");
  // No result: reading it throws a TypeError.
  const handler = keyedWith((value) => (value.user === "bad" ? undefined : { value }));
  const warned = await loudWorker(s, handler);
  for (const run of good) expect(await run.result(patience)).toBe(1);
  await until("it to be counted", async () => (await triesOf(s, bad!))! > 0);
  expect(warned).toContainEqual({
    message: "the tasks of a run could not be created",
    error: expect.stringContaining("TypeError") as string,
  });
  expect(warned).not.toContainEqual(expect.objectContaining({ message: "the database is not available" }));
  await s.sql.query(lastTry);
  await expect(bad!.result(patience)).rejects.toMatchObject({
    details: { nodes: [{ error: { code: "TypeError" } }] },
  });
});

test("a placing transaction that the server ends for being idle counts as a try, not as an outage", async () => {
  const s = await workflowScene();
  await s.sql.query(`create or replace function sluice.workflow_limit_idle() returns void language plpgsql as
    $f$ begin perform set_config('idle_in_transaction_session_timeout', '100ms', true); end $f$`);
  const [slow] = await named(s, "slow");
  const wait = (value: object): Promise<object> => new Promise((resolve) => setTimeout(() => resolve({ value }), 500));
  const handler = keyedWith((value) => (value.user === "slow" ? wait(value) : { value }));
  const warned = await loudWorker(s, handler);
  await until("it to be counted", async () => (await triesOf(s, slow!))! > 0);
  expect(warned).not.toContainEqual(expect.objectContaining({ message: "the database is not available" }));
  await s.sql.query(lastTry);
  await expect(slow!.result(patience)).rejects.toMatchObject({
    details: { nodes: [{ error: { code: "25P03" } }] },
  });
});

test("a resumed run is placed by an idle worker that a ring wakes, without a poll", async () => {
  const s = await workflowScene();
  const [run] = await named(s, "a");
  await run!.pause();
  const worker = await s.worker({ ...deaf, handlers: [keyed.handle(({ n }) => n)] });
  await until("it to sleep", async () => {
    const { rows } = await s.sql.query("select from sluice.worker where asleep");
    return rows.length === 1 && worker.status().completed === 1;
  });
  expect((await run!.status())!.nodes).toMatchObject([{ state: "held" }]);
  await run!.resume();
  expect(await run!.result(patience)).toBe(1);
});

test("small nodes of many types, priorities and limits are placed together, each with its own options", async () => {
  const s = await workflowScene();
  const free = task("free", {
    input: type<number>(),
    output: type<number>(),
    limits: (n) => (n % 2 === 0 ? [] : [perUser.for("odd")]),
    retry: once,
  });
  const mixed = workflow("mixed", { input: type<number>() }, (w, n) => {
    const a = w.task("a", keyed, { user: "a", n }, { priority: 5 });
    const b = w.task("b", keyed, { user: "b", n });
    const c = w.task("c", free, n);
    return { a, b, c };
  });
  await s.sluice.start(mixed, 0);
  const runs: Run[] = [];
  for (let n = 1; n <= 20; n++) runs.push(await s.sluice.start("mixed", n));
  await s.worker({
    pollIntervalMs: 20,
    handlers: [keyed.handle(({ n }) => n), free.handle((n) => n)],
  });
  for (const [i, run] of runs.entries()) expect(await run.result(patience)).toEqual({ a: i + 1, b: i + 1, c: i + 1 });
  const { rows } = await s.sql.query(
    `select p.name, t.rank, t.lane_keys as keys, count(*)::int as n from sluice.task t join sluice.workflow_task w using (id)
      join sluice.workflow_progress p on p.run = w.run and p.node = w.node group by 1, 2, 3 order by 1, 3`,
  );
  expect(rows).toEqual([
    { name: "a", rank: -5, keys: ["users\u001fa", "a"], n: 21 },
    { name: "b", rank: 0, keys: ["users\u001fb", "b"], n: 21 },
    { name: "c", rank: 0, keys: ["odd"], n: 10 },
    { name: "c", rank: 0, keys: null, n: 11 },
  ]);
});
