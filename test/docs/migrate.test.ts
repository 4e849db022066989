import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createPostgresBackend, runMigrations, withBackend } from "bullmq";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { Sluice, task, type } from "../../src/index.js";
import { freshDatabase } from "../support/database.js";
import { spawnTs } from "../support/process.js";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const TIMEOUT_MS = 60_000;

/** The last TypeScript block of a page, which is the migration program. */
function programOf(page: string): string {
  const text = readFileSync(join(repository, `docs/migrate/${page}.md`), "utf8");
  const client = join(repository, "src/client.js");
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)]
    .at(-1)![1]!
    .replace('"sluice/client"', JSON.stringify(client));
}

/** Runs a program as a process and returns its output. */
async function runs(code: string, url: string): Promise<string> {
  const cache = join(repository, "node_modules/.sluice");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "migrate-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "program.mts");
  writeFileSync(file, code);
  const { child, exit } = spawnTs(relative(repository, file), [], { DATABASE_URL: url });
  let [out, err] = ["", ""];
  child.stdout!.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString()));
  expect([await exit, err]).toEqual([0, ""]);
  return out;
}

async function database(): Promise<{ url: string; sql: pg.Pool }> {
  const fresh = await freshDatabase({ migrated: true });
  onTestFinished(() => fresh.drop());
  const { url } = fresh;
  const sql = new pg.Pool({ connectionString: url, max: 4 });
  sql.on("error", () => {});
  onTestFinished(() => sql.end());
  return { url, sql };
}

/** Starts a Sluice worker for a type whose input names a recipient. */
async function serve(name: string, url: string, done: (to: string) => void): Promise<void> {
  const sluice = await Sluice.connect({ url, migrate: false });
  onTestFinished(() => sluice.close({ graceMs: 0 }));
  const mail = task(name, { input: type<{ to: string }>() });
  const handler = mail.handle(({ to }) => done(to));
  await sluice.worker({ handlers: [handler], maxConcurrentTasks: 4 }).start();
}

const people = Array.from({ length: 900 }, (_, i) => `n${String(i).padStart(3, "0")}`);

test(
  "the migration program on the graphile-worker page moves a live queue without losing or repeating a job",
  async () => {
    const { url } = await database();
    const logger = new Logger(() => () => {});
    const utils = await makeWorkerUtils({ connectionString: url, logger });
    onTestFinished(() => utils.release());
    await utils.migrate();
    const add = (names: string[]) =>
      utils.addJobs(
        names.map((to, i) => ({ identifier: "send_mail", payload: { to }, priority: i % 3 })),
      );
    await add(people.slice(0, 800));
    const done: string[] = [];
    const runner = await run({
      connectionString: url,
      noHandleSignals: true,
      concurrency: 1,
      parsedCronItems: [],
      taskList: {
        send_mail: async (payload) => {
          // Slow enough that jobs are left to move.
          await sleep(10);
          done.push((payload as { to: string }).to);
        },
      },
      preset: { worker: { logger } },
    });
    onTestFinished(() => runner.stop());
    await expect.poll(() => done.length).toBeGreaterThan(0);
    const out = runs(programOf("graphile-worker"), url);
    await add(people.slice(800));
    expect(await out).toMatch(/^moved [1-9]/m);
    await serve("send-mail", url, (to) => void done.push(to));
    await expect.poll(() => done.length).toBeGreaterThanOrEqual(900);
    expect(done.toSorted()).toEqual(people);
  },
  TIMEOUT_MS,
);

test("the migration program on the graphile-worker page negates the priority and keeps the run time", async () => {
  const { url, sql } = await database();
  const utils = await makeWorkerUtils({
    connectionString: url,
    logger: new Logger(() => () => {}),
  });
  onTestFinished(() => utils.release());
  await utils.migrate();
  const runAt = new Date(Date.now() + 3_600_000);
  await utils.addJob("send_mail", { to: "b" }, { priority: 4 });
  await utils.addJob("send_mail", { to: "a" }, { priority: -9 });
  await utils.addJob("send_mail", { to: "c" }, { priority: 5, runAt });
  await utils.addJob("another", {});
  await runs(programOf("graphile-worker"), url);
  const { rows } = await sql.query(
    "select priority, state, run_at from sluice.task_state order by id",
  );
  expect(rows).toEqual([
    { priority: 9, state: "ready", run_at: null },
    { priority: -4, state: "ready", run_at: null },
    { priority: -5, state: "scheduled", run_at: runAt },
  ]);
  const left = await sql.query("select task_identifier from graphile_worker.jobs");
  expect(left.rows).toEqual([{ task_identifier: "another" }]);
});

// BullMQ has the same interface on PostgreSQL as on Redis, which is not installed everywhere.
const onPostgres = (code: string): string =>
  code
    .replace("import { Queue }", "import { createPostgresBackend, withBackend }")
    .replace(
      '{ url: "redis://localhost:6379" }',
      '{ connectionString: process.env["DATABASE_URL"]! }',
    )
    .replace(
      "const queue =",
      "const { Queue } = withBackend(createPostgresBackend);\nconst queue =",
    );

test(
  "the migration program on the BullMQ page moves a paused queue with its delays and priorities",
  async () => {
    const { url, sql } = await database();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await runMigrations(client);
    await client.end();
    const { Queue } = withBackend(createPostgresBackend);
    const queue = new Queue<{ to: string }>("mail", { connection: { connectionString: url } });
    onTestFinished(() => queue.close());
    await queue.addBulk(people.slice(0, 250).map((to) => ({ name: "welcome", data: { to } })));
    await queue.add("welcome", { to: "later" }, { delay: 3_600_000 });
    await queue.add("welcome", { to: "first" }, { priority: 2 });
    const out = await runs(onPostgres(programOf("bullmq")), url);
    expect(out).toContain("moved 252\n");
    expect(await queue.getJobCountByTypes("waiting", "delayed", "prioritized")).toBe(0);
    const { rows } = await sql.query(
      "select state, priority, count(*)::int as n from sluice.task_state group by 1, 2 order by 1, 2",
    );
    expect(rows).toEqual([
      { state: "ready", priority: -2, n: 1 },
      { state: "ready", priority: 0, n: 250 },
      { state: "scheduled", priority: 0, n: 1 },
    ]);
  },
  TIMEOUT_MS,
);
