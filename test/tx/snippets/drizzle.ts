import { pgTable, serial, text, type PgDatabase, type PgQueryResultHKT } from "drizzle-orm/pg-core";
import type { Sluice } from "../../../src/index.js";
import { fromDrizzle } from "../../../src/tx/index.js";
import { sendWelcome } from "./tasks.js";

export const account = pgTable("account", { id: serial().primaryKey(), name: text().notNull() });

// drizzle() of drizzle-orm/node-postgres and of drizzle-orm/postgres-js both give such a db.
type Db = PgDatabase<PgQueryResultHKT>;

export async function signUp(db: Db, sluice: Sluice, name: string): Promise<void> {
  await db.transaction(async (tx) => {
    const rows = await tx.insert(account).values({ name }).returning({ id: account.id });
    const input = { account: rows[0]!.id, name };
    await sluice.enqueue(sendWelcome, input, { tx: fromDrizzle(tx) });
  });
}
