import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { untilUnchanged } from "../../fault/rest.js";
import { Sluice } from "../../src/index.js";
import { freshDatabase } from "../support/database.js";

test("what is put back waits for a change that the server still has in hand", async () => {
  const database = await freshDatabase({ migrated: true });
  const { url } = database;
  const sluice = await Sluice.connect({ url });
  const sql = new pg.Pool({ connectionString: url });
  onTestFinished(async () => {
    await sluice.close();
    await sql.end();
    await database.drop();
  });
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
