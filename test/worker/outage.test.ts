import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test, vi } from "vitest";
import { Sluice, task, type, type TaskContext } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { Outages } from "../../src/worker/outage.js";
import { violations } from "../support/audit.js";
import { ended, scene, until, type Scene } from "../flow/scene.js";

/** A role that may use the queue, and can be refused connections: a superuser cannot. */
async function withRole(s: Scene): Promise<{ url: string; connections: (max: number) => Promise<void> }> {
  const role = `sluice_test_${randomBytes(6).toString("hex")}`;
  await s.sql.query(`create role ${role} login password 'secret'`);
  onTestFinished(async () => {
    await s.sql.query(`drop owned by ${role}`);
    await s.sql.query(`drop role ${role}`);
  });
  const all = ["tables", "sequences", "functions"];
  await s.sql.query(`grant usage on schema sluice to ${role}`);
  for (const what of all) await s.sql.query(`grant all on all ${what} in schema sluice to ${role}`);
  const url = new URL(s.url);
  url.username = role;
  url.password = "secret";
  const connections = async (max: number): Promise<void> =>
    void (await s.sql.query(`alter role ${role} connection limit ${max}`));
  return { url: url.href, connections };
}

const once = { attempts: 1 };
const item = task("item", { input: type<number>() });
const uses: Record<string, (ctx: TaskContext) => Promise<unknown>> = {
  "ctx.transaction": (ctx) => ctx.transaction(async (tx) => void (await tx.query("select 1"))),
  "ctx.enqueue": (ctx) => ctx.enqueue(item, 1),
  "ctx.map": (ctx) => ctx.map("items", [1, 2], item),
};

for (const [name, use] of Object.entries(uses)) {
  test(`${name} without a free connection postpones its task and uses no attempt`, async () => {
    const s = await scene();
    const role = await withRole(s);
    const behind = await Sluice.connect({ url: role.url, migrate: false, logger: silentLogger });
    onTestFinished(() => behind.close());
    const job = task("job", { input: type<number>(), order: (n) => `${n % 2}`, retry: once });
    const plain = task("plain");
    const runs = new Map<string, number>();
    const worker = behind.worker({
      handlers: [
        plain.handle(() => {}),
        item.handle(() => {}),
        job.handle(async (_, ctx) => {
          runs.set(ctx.id, (runs.get(ctx.id) ?? 0) + 1);
          await use(ctx);
        }),
      ],
    });
    await worker.start();
    onTestFinished(() => worker.stop({ graceMs: 0 }));
    await (await s.sluice.enqueue(plain)).result({ timeoutMs: 10_000 });
    await role.connections(0);
    const ids = (await s.sluice.enqueueMany(job, [1, 2, 3, 4])).ids();
    // Of each key only the head runs: a task that is put off keeps its place in line.
    await until("both heads to be put off twice", () => {
      const seen = [...runs.values()];
      return seen.length === 2 && seen.every((n) => n >= 3);
    });
    expect([...runs.keys()].toSorted()).toEqual(ids.slice(0, 2).toSorted());
    await role.connections(-1);
    for (const id of ids) {
      await s.sluice.task(id).result({ timeoutMs: 30_000 });
      expect((await s.sluice.task(id).status())?.attempt).toBe(1);
    }
    await until("the worker to be empty", () => worker.status().permitsInUse === 0);
    expect(await violations(s.sql)).toEqual([]);
  });
}

test("a backend terminated during a transaction uses no attempt, also if a library wraps the error", async () => {
  const s = await scene({ logger: silentLogger });
  const job = task("job", { input: type<"plain" | "wrapped">(), retry: once });
  const seen = new Set<string>();
  await s.worker({
    handlers: [
      job.handle((how, ctx) =>
        ctx.transaction(async (tx) => {
          if (seen.has(how)) return how;
          seen.add(how);
          const suicide = tx.query("select pg_terminate_backend(pg_backend_pid())");
          if (how === "plain") await suicide;
          // As ORMs do.
          await suicide.catch((cause: unknown) => {
            throw new Error("query failed", { cause });
          });
          return "unreachable";
        }),
      ),
    ],
  });
  for (const how of ["plain", "wrapped"] as const) {
    const handle = await s.sluice.enqueue(job, how);
    expect(await handle.result({ timeoutMs: 20_000 })).toBe(how);
    expect((await handle.status())?.attempt).toBe(1);
  }
});

test("errors of the handler itself count as failures, whatever they look like", async () => {
  const s = await scene({ logger: silentLogger });
  await s.sql.query("create table only_once (n int primary key)");
  await s.sql.query("insert into only_once values (1)");
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const ways: Record<string, (ctx: TaskContext) => Promise<unknown>> = {
    "a unique violation": (ctx) => ctx.transaction((tx) => tx.query("insert into only_once values (1)")),
    "a statement timeout": (ctx) =>
      ctx.transaction(async (tx) => {
        await tx.query("set local statement_timeout = 10");
        await tx.query("select pg_sleep(60)");
      }),
    "a statement that runs out of memory": (ctx) =>
      ctx.transaction((tx) => tx.query("do $$ begin raise exception 'out of memory' using errcode = '53200'; end $$")),
    "a statement that fills the disk": (ctx) =>
      ctx.transaction((tx) => tx.query("do $$ begin raise exception 'disk full' using errcode = '53100'; end $$")),
    "a parameter that cannot be sent": (ctx) => ctx.transaction((tx) => tx.query("select $1::text", [circular])),
    "another server's refusal": (ctx) =>
      ctx.transaction(() => Promise.reject(Object.assign(new Error("no"), { code: "ECONNREFUSED" }))),
    "an idle transaction that the server ended": (ctx) =>
      ctx.transaction(async (tx) => {
        await tx.query("set local idle_in_transaction_session_timeout = 20");
        const { rows } = await tx.query("select pg_backend_pid() as pid");
        await until("the server to end it", async () => {
          const found = await s.sql.query("select from pg_stat_activity where pid = $1", [rows[0].pid]);
          return found.rowCount === 0;
        });
        await tx.query("select 1");
      }),
    "an error of its own because of an outage": (ctx) =>
      ctx
        .transaction((tx) => tx.query("select pg_terminate_backend(pg_backend_pid())"))
        .catch((cause: unknown) => {
          throw new Error("the order could not be booked", { cause });
        }),
  };
  const job = task("job", { input: type<string>(), retry: once });
  await s.worker({ handlers: [job.handle((way, ctx) => ways[way]!(ctx))] });
  const ids = (await s.sluice.enqueueMany(job, Object.keys(ways))).ids();
  await ended(s, ids.length);
  const states: Record<string, string | undefined> = {};
  for (const [i, way] of Object.keys(ways).entries()) states[way] = (await s.sluice.task(ids[i]!).status())?.state;
  expect(states).toEqual(Object.fromEntries(Object.keys(ways).map((way) => [way, "failed"])));
});

test("a handler that catches an outage and continues succeeds", async () => {
  const s = await scene({ logger: silentLogger });
  const job = task("job", { retry: once });
  await s.worker({
    handlers: [
      job.handle(async (_, ctx) => {
        const lost = ctx.transaction((tx) => tx.query("select pg_terminate_backend(pg_backend_pid())"));
        return lost.catch((e: { code: string }) => e.code);
      }),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  expect(await handle.result({ timeoutMs: 20_000 })).toBe("57P01");
});

test("the delay after an outage doubles per task up to 8 s, and restarts after the outage", () => {
  vi.spyOn(Math, "random").mockReturnValue(1);
  onTestFinished(() => void vi.restoreAllMocks());
  const outages = new Outages();
  const delays = Array.from({ length: 8 }, () => outages.delayMs("1"));
  expect(delays).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
  expect(outages.delayMs("2")).toBe(250);
  outages.over("1");
  expect(outages.delayMs("1")).toBe(250);
});
