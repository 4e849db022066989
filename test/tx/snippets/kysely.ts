import type { Generated, Kysely } from "kysely";
import type { Sluice } from "../../../src/index.js";
import { fromKysely } from "../../../src/tx/index.js";
import { sendWelcome } from "./tasks.js";

export interface Tables {
  account: { id: Generated<number>; name: string };
}

export async function signUp(db: Kysely<Tables>, sluice: Sluice, name: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const { id } = await trx
      .insertInto("account")
      .values({ name })
      .returning("id")
      .executeTakeFirstOrThrow();
    await sluice.enqueue(sendWelcome, { account: id, name }, { tx: fromKysely(trx) });
  });
}
