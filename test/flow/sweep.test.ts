import { test } from "vitest";
import { task, type } from "../../src/index.js";
import { scene, until, type Scene } from "./scene.js";

const TASKS = 30_000;
const TIMEOUT_MS = 180_000;
const PATIENCE_MS = 60_000;
const job = task("job", { input: type<number>() });

/** Autovacuum is off: only the worker vacuums. */
async function unswept(): Promise<Scene> {
  const s = await scene();
  await s.sql.query("alter table sluice.ready set (autovacuum_enabled = false)");
  await s.sql.query("alter table sluice.running set (autovacuum_enabled = false)");
  return s;
}

async function drain(s: Scene): Promise<void> {
  await s.sluice.enqueueMany(
    job,
    Array.from({ length: TASKS }, (_, i) => i),
  );
  const worker = await s.worker({ claimBatchSize: 500, handlers: [job.handle(() => {})] });
  await until("all to complete", () => worker.status().completed >= TASKS, PATIENCE_MS);
}

async function rowsOf(s: Scene, table: "ready" | "running"): Promise<{ dead: number; vacuums: number }> {
  const { rows } = await s.sql.query<{ dead: number; vacuums: number }>(
    `select n_dead_tup::int as dead, vacuum_count::int as vacuums
      from pg_stat_all_tables where relid = $1::regclass`,
    [`sluice.${table}`],
  );
  return rows[0]!;
}

test("the keeper vacuums ready and running within seconds, without autovacuum", { timeout: TIMEOUT_MS }, async () => {
  const s = await unswept();
  await drain(s);
  for (const table of ["ready", "running"] as const)
    await until(
      `${table} to be clean`,
      async () => {
        const { dead, vacuums } = await rowsOf(s, table);
        return vacuums > 0 && dead < 10_000;
      },
      PATIENCE_MS,
    );
});
