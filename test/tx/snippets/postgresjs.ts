import type postgres from "postgres";
import type { Sluice } from "../../../src/index.js";
import { fromPostgresJs } from "../../../src/tx/index.js";
import { sendWelcome } from "./tasks.js";

export async function signUp(sql: postgres.Sql, sluice: Sluice, name: string): Promise<void> {
  await sql.begin(async (tx) => {
    const rows = await tx<
      { id: number }[]
    >`insert into account (name) values (${name}) returning id`;
    const input = { account: rows[0]!.id, name };
    await sluice.enqueue(sendWelcome, input, { tx: fromPostgresJs(tx) });
  });
}
