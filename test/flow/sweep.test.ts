import { test } from "vitest";
import { task, type } from "../../src/index.js";
import { scene, until, type Scene } from "./scene.js";

const TASKS = 30_000;
const job = task("job", { input: type<number>() });

/** Only the worker cleans: autovacuum is off. */
async function unswept(): Promise<Scene> {
  const s = await scene();
  await s.sql.query("alter table sluice.ready set (autovacuum_enabled = false)");
  await s.sql.query("alter table sluice.run set (autovacuum_enabled = false)");
  return s;
}

async function drain(s: Scene): Promise<void> {
  await s.sluice.enqueueMany(
    job,
    Array.from({ length: TASKS }, (_, i) => i),
  );
  const worker = await s.worker({ claimBatchSize: 500, handlers: [job.handle(() => {})] });
  await until("all to complete", () => worker.status().completed >= TASKS);
}

async function rowsOf(
  s: Scene,
  table: "ready" | "run",
): Promise<{ dead: number; vacuums: number }> {
  const { rows } = await s.sql.query<{ dead: number; vacuums: number }>(
    `select n_dead_tup::int as dead, vacuum_count::int as vacuums
      from pg_stat_all_tables where relid = $1::regclass`,
    [`sluice.${table}`],
  );
  return rows[0]!;
}

test.each(["ready", "run"] as const)(
  "the keeper vacuums %s within seconds, without autovacuum",
  async (table) => {
    const s = await unswept();
    await drain(s);
    await until("a vacuum", async () => (await rowsOf(s, table)).vacuums > 0);
    await until("few dead rows", async () => (await rowsOf(s, table)).dead < 10_000);
  },
);
