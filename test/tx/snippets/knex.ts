import type { Knex } from "knex";
import type { Sluice } from "../../../src/index.js";
import { fromKnex } from "../../../src/tx/index.js";
import { sendWelcome } from "./tasks.js";

export async function signUp(knex: Knex, sluice: Sluice, name: string): Promise<void> {
  await knex.transaction(async (trx) => {
    const rows = await trx<{ id: number; name: string }>("account").insert({ name }, ["id"]);
    const input = { account: rows[0]!.id, name };
    await sluice.enqueue(sendWelcome, input, { tx: fromKnex(trx) });
  });
}
