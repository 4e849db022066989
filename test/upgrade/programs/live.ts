// node live.ts PACKAGE URL: leaves a database with all kinds of unfinished work.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { EFFECTS, refusing, working } from "./handlers.js";
import { load, worldOf, type Name } from "./world.js";

const WAIT_MS_MAX = 60_000;
const CRASHES = 3;
const YEARLY = "0 0 1 1 *";
// The dump is kept for as long as its release is supported.
const TEN_YEARS_MS = 315_360_000_000;

const [address, url] = process.argv.slice(2) as [string, string];
const library = await load(address);
const world = worldOf(library);
const { tasks, limits, workflows } = world;
const pool = new pg.Pool({ connectionString: url, max: 4 });
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const sluice = await library.Sluice.connect({ url, logger: silent, idempotencyMs: TEN_YEARS_MS });

/** Waits until a table has at least this many rows. */
async function rowsIn(table: string, atLeast: number): Promise<void> {
  for (const endMs = Date.now() + WAIT_MS_MAX; ; await sleep(50)) {
    const { rows } = await pool.query<{ n: number }>(`select count(*)::int as n from sluice.${table}`);
    if (rows[0]!.n >= atLeast) return;
    if (Date.now() > endMs) throw new Error(`${table}: ${rows[0]!.n} rows, and ${atLeast} were waited for`);
  }
}

/** Kills a worker once it has started a task of each of these types. */
async function dyingWorker(...names: Name[]): Promise<void> {
  // This file runs as TypeScript or transpiled.
  const program = fileURLToPath(new URL(`./worker${extname(import.meta.url)}`, import.meta.url));
  const args = [...process.execArgv, program, address, url, "hang", ...names];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const missing = new Set<string>(names.map((name) => `began ${name}`));
  for await (const line of createInterface({ input: child.stdout })) {
    missing.delete(line);
    if (missing.size === 0) break;
  }
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}

const input = (key: string, n = 0) => ({ key, n });

/** Ended tasks, failed ones, runs in the middle, and tasks that no worker serves. */
async function history(): Promise<void> {
  await sluice.sync([...Object.values(limits), ...Object.values(tasks), ...Object.values(workflows)]);
  await sluice.enqueueMany(
    tasks.plain,
    [1, 2, 3].map((n) => input("done", n)),
  );
  const unwanted = await sluice.enqueue(tasks.plain, input("unwanted"), { delayMs: 60_000 });
  await unwanted.cancel();
  await sluice.enqueue(tasks.failing, input("failed"));
  for (const n of [1, 2]) await sluice.enqueue(tasks.blocking, input("blocked", n));
  await sluice.enqueueMany(
    tasks.unserved,
    [1, 2, 3].map((n) => input("in the way", n)),
  );
  await sluice.enqueue(tasks.mapper, input("map"));
  await sluice.start(workflows.fan, input("fan"), { idempotencyKey: "fan" });
  await sluice.start(workflows.approve, input("approve"));
  const paused = await sluice.start(workflows.fan, input("paused"));
  await rowsIn("done where state = 'succeeded'", 5);
  await rowsIn("done where state = 'failed'", 2);
  await rowsIn("parent", 1);
  await paused.pause();
  // Tasks without a worker hold the slots of a key until they are parked.
  await sluice.enqueueMany(
    tasks.keyed,
    [1, 2].map((n) => input("in the way", n)),
  );
  await rowsIn("parked", 1);
}

/** A task that was running at three crashes. */
async function suspects(): Promise<void> {
  await sluice.enqueue(tasks.poison, input("poison"));
  for (let crash = 1; crash <= CRASHES; crash++) {
    await dyingWorker("poison");
    await rowsIn(crash < CRASHES ? `crash where cardinality(workers) = ${crash}` : "suspect", 1);
  }
}

/** Tasks that wait at order keys, limits, groups, times and a paused queue. */
async function waiting(): Promise<void> {
  await sluice.limits.set("shared", { total: 1 });
  await sluice.pause("held");
  await sluice.enqueueMany(
    tasks.held,
    [1, 2].map((n) => input("held", n)),
  );
  await sluice.enqueueMany(
    tasks.ordered,
    [1, 2, 3, 4].map((n) => input(`key-${n % 2}`, n)),
  );
  await sluice.enqueueMany(
    tasks.keyed,
    [1, 2, 3, 4, 5, 6].map((n) => input(`tenant-${n % 2}`, n)),
  );
  await sluice.enqueueMany(
    tasks.alone,
    [1, 2, 3].map((n) => input("alone", n)),
  );
  for (const n of [1, 2]) await sluice.enqueue(tasks.plain, input("group", n), { group: "team", groupLimit: 1 });
  await sluice.enqueue(tasks.plain, input("once"), { idempotencyKey: "once" });
  await sluice.enqueue(tasks.plain, input("later"), { delayMs: 5_000 });
  await sluice.schedules.set("yearly", { cron: YEARLY, task: tasks.plain, input: input("yearly"), missed: "skip" });
  await sluice.schedules.set("paused", { everyMs: 1_000, task: tasks.plain, input: input("never") });
  await sluice.schedules.pause("paused");
}

await pool.query(EFFECTS);
const handlers = [
  ...working(world, ["plain", "list", "mapper"], pool, "live"),
  ...refusing(world, ["failing", "flaky", "blocking"]),
  ...working(world, ["keyed"], pool, "live"),
];
const worker = sluice.worker({ handlers, pollIntervalMs: 50, leaseMs: 2_000 });
await worker.start();
await history();
await suspects();
await sluice.enqueue(tasks.flaky, input("retrying"));
await rowsIn("scheduled where attempt > 0", 1);
await worker.stop();
await waiting();
// No process is left to recover its tasks.
await dyingWorker("ordered", "keyed", "alone", "item");
await sluice.close();
await pool.end();
