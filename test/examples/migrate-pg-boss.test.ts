import pg from "pg";
import { PgBoss, type ConstructorOptions, type Queue } from "pg-boss";
import { expect, onTestFinished, test } from "vitest";
import { Sluice, type TaskHandler } from "../../src/index.js";
import { freshDatabase } from "../support/database.js";
import { spawnTs, type SpawnedTs } from "../support/process.js";
import { bill, ship, work } from "./programs/orders.js";

const PROGRAM = "examples/migrate/pg-boss.ts";
const TASKS = "test/examples/programs/orders.ts";
const TIMEOUT_MS = 180_000;

interface House {
  readonly url: string;
  readonly sql: pg.Pool;
  readonly boss: PgBoss;
  /** Records that a handler has processed order n. */
  done(n: number, by: "pg-boss" | "sluice"): Promise<void>;
  /** Starts the migration program. */
  move(queue: string, task: string, ...more: string[]): SpawnedTs;
  /** Starts a Sluice worker. */
  serve(...handlers: TaskHandler[]): Promise<Sluice>;
}

/** One database with pg-boss, a queue, and the log of both kinds of handlers. */
async function house(queue: string, options: Omit<Queue, "name"> = {}): Promise<House> {
  const database = await freshDatabase({ migrated: true });
  onTestFinished(() => database.drop());
  const sql = new pg.Pool({ connectionString: database.url, max: 4 });
  sql.on("error", () => {});
  onTestFinished(() => sql.end());
  await sql.query("create table done (n int, by text, at timestamptz default clock_timestamp(), id serial)");
  const quiet: ConstructorOptions = { supervise: false, schedule: false, max: 4 };
  const boss = new PgBoss({ connectionString: database.url, ...quiet });
  boss.on("error", () => {});
  await boss.start();
  onTestFinished(() => boss.stop({ graceful: false }));
  await boss.createQueue(queue, options);
  return {
    url: database.url,
    sql,
    boss,
    done: async (n, by) => {
      await work();
      await sql.query("insert into done (n, by) values ($1, $2)", [n, by]);
    },
    move: (name, task, ...more) =>
      spawnTs(PROGRAM, ["--queue", name, "--task", `${TASKS}#${task}`, ...more], {
        DATABASE_URL: database.url,
      }),
    serve: async (...handlers) => {
      const sluice = await Sluice.connect({ url: database.url, migrate: false });
      onTestFinished(() => sluice.close({ graceMs: 0 }));
      await sluice.worker({ handlers, maxConcurrentTasks: 4 }).start();
      return sluice;
    },
  };
}

/** The output of the program and its exit code. */
async function ended({ child, exit }: SpawnedTs): Promise<{ code: number | null; out: string }> {
  let out = "";
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk: Buffer) => (out += chunk.toString()));
  const code = await exit;
  return { code, out };
}

async function logged({ sql }: House): Promise<{ n: number; by: string }[]> {
  const { rows } = await sql.query<{ n: number; by: string }>("select n, by from done order by id");
  return rows;
}

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

test(
  "the pg-boss migration moves a live queue while both systems run, without losing or repeating a job",
  async () => {
    const h = await house("bill");
    const send = (ns: number[]) =>
      h.boss.insert(
        "bill",
        ns.map((n) => ({
          data: { n },
          priority: n % 3,
          // Some jobs become due during the migration, and some fail once before they succeed.
          ...(n % 50 === 0 ? { startAfter: 2 } : {}),
          retryLimit: 3,
        })),
      );
    await send(numbers(0, 600));
    const failedOnce = new Set<number>();
    await h.boss.work<{ n: number }>(
      "bill",
      { batchSize: 4, localConcurrency: 2, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
      async (jobs) => {
        for (const { data } of jobs) {
          if (data.n % 40 === 1 && !failedOnce.has(data.n)) {
            failedOnce.add(data.n);
            throw new Error("fails once, and its batch with it");
          }
        }
        for (const { data } of jobs) await h.done(data.n, "pg-boss");
      },
    );
    await h.serve(bill.handle(({ n }) => h.done(n, "sluice")));

    const mover = h.move("bill", "bill", "--batch", "20", "--follow");
    const end = ended(mover);
    await mover.line((line) => line === "moved 20");
    for (let n = 600; n < 900; n += 50) await send(numbers(n, n + 50));
    await expect.poll(async () => (await logged(h)).length, { timeout: 30_000 }).toBe(900);
    await h.boss.offWork("bill");
    mover.child.kill("SIGTERM");
    const { code, out } = await end;

    const all = await logged(h);
    expect(all.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual(numbers(0, 900));
    expect(new Set(all.map(({ by }) => by))).toEqual(new Set(["pg-boss", "sluice"]));
    expect(out).toMatch(
      /^done: \d+ moved \(0 were in Sluice already\), 0 refused; left in pg-boss: 0 waiting, 0 active, 0 in flows$/m,
    );
    expect(code).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "the pg-boss migration can be killed at any batch and rerun without losing or repeating a job",
  async () => {
    const h = await house("bill");
    await h.boss.insert(
      "bill",
      numbers(0, 300).map((n) => ({ data: { n } })),
    );
    for (const at of [20, 40]) {
      const mover = h.move("bill", "bill", "--batch", "5");
      await mover.line((line) => line === `moved ${at}`);
      await mover.kill("SIGKILL");
    }
    const { code, out } = await ended(h.move("bill", "bill", "--batch", "50"));
    expect([code, out]).toEqual([0, expect.stringContaining("0 waiting, 0 active")]);
    await h.serve(bill.handle(({ n }) => h.done(n, "sluice")));
    await expect.poll(async () => (await logged(h)).length).toBe(300);
    expect((await logged(h)).map(({ n }) => n).toSorted((a, b) => a - b)).toEqual(numbers(0, 300));
  },
  TIMEOUT_MS,
);

test(
  "the pg-boss migration keeps priority, start time and age, and leaves jobs that Sluice refuses",
  async () => {
    const h = await house("bill");
    const later = new Date(Date.now() + 3_600_000);
    await h.boss.send("bill", { n: 1 });
    await h.boss.send("bill", { n: 2 }, { priority: 7 });
    await h.boss.send("bill", { n: 3 }, { priority: 100_000 });
    await h.boss.send("bill", { n: 4 }, { startAfter: later });
    const bad = await h.boss.send("bill", { n: "five" });

    const dry = await ended(h.move("bill", "bill", "--dry-run"));
    expect([dry.code, dry.out]).toEqual([0, "bill: 5 waiting, 0 active, 0 in flows (standard)\n"]);
    const { code, out } = await ended(h.move("bill", "bill"));
    expect(code).toBe(1);
    expect(out).toContain(`job ${bad} stays: `);
    expect(out).toContain("done: 4 moved (0 were in Sluice already), 1 refused;");
    expect(await h.boss.findJobs("bill", { id: bad! })).toHaveLength(1);

    const { rows } = await h.sql.query("select priority, state, run_at from sluice.task_state order by id");
    expect(rows).toEqual([
      { priority: 0, state: "ready", run_at: null },
      { priority: 7, state: "ready", run_at: null },
      { priority: 32_000, state: "ready", run_at: null },
      { priority: 0, state: "scheduled", run_at: later },
    ]);
  },
  TIMEOUT_MS,
);

test(
  "the pg-boss migration keeps the order of every key, with a job that waits for its retry first",
  async () => {
    const h = await house("ship", { policy: "key_strict_fifo" });
    const keys = ["ada", "bob", "eve"];
    for (const n of numbers(0, 30))
      await h.boss.send("ship", { n }, { singletonKey: keys[n % 3]!, retryLimit: 2, retryDelay: 600 });
    // The first of "ada" fails and waits for ten minutes; the first of "bob" is active.
    const [first, second] = await h.boss.fetch<{ n: number }>("ship", { batchSize: 2 });
    await h.boss.fail("ship", first!.id);
    const options = ["--input", `${TASKS}#shipInput`];
    const refused = await ended(h.move("ship", "ship", ...options));
    expect([refused.code, refused.out]).toEqual([
      1,
      expect.stringContaining("the policy key_strict_fifo limits active jobs, and 1 are active"),
    ]);
    await h.boss.complete("ship", second!.id);
    const { code, out } = await ended(h.move("ship", "ship", ...options, "--batch", "7"));
    expect([code, out]).toEqual([0, expect.stringContaining("done: 29 moved")]);

    await h.serve(ship.handle(({ n }) => h.done(n, "sluice")));
    await expect.poll(async () => (await logged(h)).length).toBe(29);
    const done = (await logged(h)).map(({ n }) => n);
    for (const key of [0, 1, 2])
      expect(done.filter((n) => n % 3 === key)).toEqual(
        numbers(0, 30).filter((n) => n % 3 === key && n !== second!.data.n),
      );
  },
  TIMEOUT_MS,
);

test("the pg-boss migration leaves jobs of a flow in pg-boss", async () => {
  const h = await house("bill");
  await h.boss.flow([
    { ref: "first", name: "bill", data: { n: 1 } },
    { ref: "second", name: "bill", data: { n: 2 }, dependsOn: ["first"] },
  ]);
  await h.boss.send("bill", { n: 3 });
  const { code, out } = await ended(h.move("bill", "bill"));
  expect(code).toBe(0);
  expect(out).toContain("done: 1 moved");
  expect(out).toContain("left in pg-boss: 0 waiting, 0 active, 2 in flows");
});

test("the pg-boss migration prints its options with --help and exits with 2 on a wrong command line", async () => {
  const help = await ended(spawnTs(PROGRAM, ["--help"]));
  expect([help.code, help.out]).toEqual([0, expect.stringContaining("--task MODULE#EXPORT")]);
  const url = { DATABASE_URL: "postgres://localhost/none" };
  for (const args of [[], ["--queue", "a", "--task", "b"], ["--nope"]]) {
    const { code, out } = await ended(spawnTs(PROGRAM, args, url));
    expect([code, out.trim()]).toEqual([2, expect.stringContaining("--")]);
  }
});
