import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.js";
import { lookAt } from "../flow/scene.js";
import { play } from "./play.js";

const PATIENCE_MS = 150_000;
const clean = { lost: 0, doubled: 0, overLimit: 0, outOfOrder: 0, findings: [] };

/** The schemas that a demo has left in a database. */
async function left(url: string): Promise<unknown[]> {
  const sql = lookAt(url);
  const { rows } = await sql.query("select nspname from pg_namespace where nspname like '%demo%'");
  await sql.end();
  return rows;
}

test("the demo ends by itself, passes its audit and leaves nothing behind", { timeout: PATIENCE_MS }, async () => {
  const database = await freshDatabase();
  const { code, out, err, report } = await play(["--json", "--tasks", "1000"], {
    DATABASE_URL: database.url,
  }).end;
  expect([code, err]).toEqual([0, ""]);
  expect(out).not.toContain("\u001b");
  expect(out).toMatch(/gateway was lowered from 16 to 4\n[^]*gateway was raised to 16 again\n/);
  expect(out).toMatch(/worker-2 was killed with kill -9\n[^]*worker-4 .* started in its place\n/);
  expect(out).toContain("Nothing was lost, doubled, over a limit or out of order.\n");
  const found = report();
  expect(found).toMatchObject({ ...clean, acknowledged: 1000, orderKeys: 48 });
  expect(found.tasksPerSecond).toBeGreaterThan(0);
  // Tasks used every limit at every value it had.
  expect(found.peaks.map(({ limit, slots }) => `${limit} ${slots}`).toSorted()).toEqual([
    "gateway 16",
    "gateway 4",
    "mail 6",
    "tenant 4",
  ]);
  for (const { peak } of found.peaks) expect(peak).toBeGreaterThan(0);
  // All tasks of the dead worker ran again.
  expect(found.runs).toBeGreaterThanOrEqual(1000 + found.reclaimedAfterMs.length);
  expect(out).toMatch(/(started again on another worker, .* s after the kill|No task had to be reclaimed)\./);
  expect(await left(database.url)).toEqual([]);
  await database.drop();
});

test("the demo runs on the embedded PostgreSQL after npm install alone", { timeout: PATIENCE_MS }, async () => {
  const { code, out, err } = await play(["--tasks", "200"], { DATABASE_URL: undefined }).end;
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("embedded");
});

test("Ctrl-C stops the demo and its workers and leaves nothing behind", { timeout: PATIENCE_MS }, async () => {
  const database = await freshDatabase();
  const { process, end } = play([], { DATABASE_URL: database.url });
  await process.line((line) => line.includes("were enqueued"));
  process.child.kill("SIGINT");
  const { code, err } = await end;
  expect([code, err]).toEqual([2, "demo: ended by SIGINT\n"]);
  expect(await left(database.url)).toEqual([]);
  const sql = lookAt(database.url);
  const { rows } = await sql.query(
    "select from pg_stat_activity where datname = current_database() and application_name like 'worker%'",
  );
  expect(rows).toEqual([]);
  await sql.end();
  await database.drop();
});

test("the demo prints its help, and explains a wrong option in one sentence", async () => {
  const help = await play(["--help"]).end;
  expect([help.code, help.err]).toEqual([0, ""]);
  expect(help.out).toContain("npm run demo -- [options]");
  const few = await play(["--tasks", "3"]).end;
  expect([few.code, few.out]).toEqual([2, ""]);
  expect(few.err).toBe("demo: --tasks must be a number from 200 to 100000\n");
  const unknown = await play(["--speed", "9"]).end;
  expect([unknown.code, unknown.out]).toEqual([2, ""]);
  expect(unknown.err).toContain("--speed");
});
