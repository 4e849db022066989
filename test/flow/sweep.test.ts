import { test } from "vitest";
import { task, type } from "../../src/index.js";
import { scene, until, type Scene } from "./scene.js";

const TASKS = 30_000;
const job = task("job", { input: type<number>() });

/** Only the worker cleans: autovacuum is off. */
async function unswept(): Promise<Scene> {
  const s = await scene();
  await s.sql.query("alter table sluice.ready set (autovacuum_enabled = false)");
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

async function ofReady(s: Scene): Promise<{ dead: number; vacuums: number }> {
  const { rows } = await s.sql.query<{ dead: number; vacuums: number }>(
    `select n_dead_tup::int as dead, vacuum_count::int as vacuums from pg_stat_all_tables where relid = 'sluice.ready'::regclass`,
  );
  return rows[0]!;
}

test("rows that claims left behind are cleaned away within seconds, without autovacuum", async () => {
  const s = await unswept();
  await drain(s);
  await until("a vacuum", async () => (await ofReady(s)).vacuums > 0);
  await until("few dead rows", async () => (await ofReady(s)).dead < 10_000);
});
