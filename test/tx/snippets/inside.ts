import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import type { Knex } from "knex";
import type { Kysely } from "kysely";
import { account } from "./drizzle.js";
import type { Tables } from "./kysely.js";
import { sendWelcome } from "./tasks.js";

export const onDrizzle = (db: PgDatabase<PgQueryResultHKT>) =>
  sendWelcome.handle(({ name }, ctx) =>
    ctx.transaction(async (tx) => {
      const { sql, params } = db.insert(account).values({ name }).toSQL();
      await tx.query(sql, params);
    }),
  );

export const onKysely = (db: Kysely<Tables>) =>
  sendWelcome.handle(({ name }, ctx) =>
    ctx.transaction(async (tx) => {
      const { sql, parameters } = db.insertInto("account").values({ name }).compile();
      await tx.query(sql, [...parameters]);
    }),
  );

export const onKnex = (knex: Knex) =>
  sendWelcome.handle(({ name }, ctx) =>
    ctx.transaction(async (tx) => {
      const { sql, bindings } = knex("account").insert({ name }).toSQL().toNative();
      await tx.query(sql, [...bindings]);
    }),
  );
