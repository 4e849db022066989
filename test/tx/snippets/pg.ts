import type pg from "pg";
import type { Sluice } from "../../../src/index.js";
import { sendWelcome } from "./tasks.js";

export async function signUp(pool: pg.Pool, sluice: Sluice, name: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const { rows } = await client.query<{ id: number }>(
      "insert into account (name) values ($1) returning id",
      [name],
    );
    await sluice.enqueue(sendWelcome, { account: rows[0]!.id, name }, { tx: client });
    await client.query("commit");
  } catch (e) {
    await client.query("rollback");
    throw e;
  } finally {
    client.release();
  }
}
