import type pg from "pg";
import { expect, test } from "vitest";
import { untilUnchanged } from "../../fault/rest.js";
import { scene } from "../flow/scene.js";

test("untilUnchanged waits for a change that the server is still executing", async () => {
  const { sluice, sql } = await scene();
  const holder = await sql.connect();
  await holder.query("begin");
  await holder.query("select sluice.barrier_shared()");
  const change = sluice.pause("default");
  await seen(sql, "pause_queue");
  const order: string[] = [];
  const quiet = untilUnchanged(sql).then(() => order.push("quiet"));
  await seen(sql, "pg_stat_activity where state");
  await holder.query("commit").then(() => order.push("released"));
  holder.release();
  await change;
  await quiet;
  expect(order).toEqual(["released", "quiet"]);
});

/** Until another session of this database is at such a statement, or has just been. */
async function seen(sql: pg.Pool, text: string): Promise<void> {
  for (;;) {
    const { rows } = await sql.query<{ queries: string[] }>(
      "select array_agg(query) as queries from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()",
    );
    if (rows[0]!.queries.some((query) => query.includes(text))) return;
  }
}
