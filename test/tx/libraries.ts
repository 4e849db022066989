import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import { knex as openKnex } from "knex";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { fromDrizzle, fromKnex, fromKysely, fromPostgresJs } from "../../src/tx/index.js";
import type { Library } from "./library.js";
import * as drizzle from "./snippets/drizzle.js";
import * as knex from "./snippets/knex.js";
import * as kysely from "./snippets/kysely.js";
import * as onPg from "./snippets/pg.js";
import * as postgresJs from "./snippets/postgresjs.js";

function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  // One test cuts a connection: without a listener, the error event of pg ends the process.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool.on("error", () => {});
}

async function onClient<T>(client: pg.ClientBase, fn: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await fn();
    await client.query("commit");
    return result;
  } catch (e) {
    await client.query("rollback");
    throw e;
  }
}

const insertOn = (client: pg.ClientBase) => async (name: string) =>
  void (await client.query("insert into account (name) values ($1)", [name]));

function pgPool(url: string): Library {
  const pool = poolOf(url);
  return {
    async transaction(fn) {
      const client = await pool.connect();
      try {
        return await onClient(client, () => fn({ tx: client, insert: insertOn(client) }));
      } finally {
        client.release();
      }
    },
    signUp: (sluice, name) => onPg.signUp(pool, sluice, name),
    close: () => pool.end(),
  };
}

function pgClient(url: string): Library {
  const pool = poolOf(url);
  return {
    async transaction(fn) {
      const client = new pg.Client(url);
      client.on("error", () => {});
      await client.connect();
      try {
        return await onClient(client, () => fn({ tx: client, insert: insertOn(client) }));
      } finally {
        await client.end();
      }
    },
    signUp: (sluice, name) => onPg.signUp(pool, sluice, name),
    close: () => pool.end(),
  };
}

function openPostgresJs(url: string): Library {
  const sql = postgres(url, { max: 3, onnotice: () => {} });
  return {
    transaction: <T>(fn: Parameters<Library["transaction"]>[0]) =>
      sql.begin((tx) =>
        fn({
          tx: fromPostgresJs(tx),
          insert: async (name) => void (await tx`insert into account (name) values (${name})`),
        }),
      ) as Promise<T>,
    signUp: (sluice, name) => postgresJs.signUp(sql, sluice, name),
    close: () => sql.end(),
  };
}

type Db = Parameters<typeof drizzle.signUp>[0];

function onDrizzle(db: Db, close: () => Promise<void>): Library {
  return {
    transaction: (fn) =>
      db.transaction((tx) =>
        fn({
          tx: fromDrizzle(tx),
          insert: async (name) => void (await tx.insert(drizzle.account).values({ name })),
        }),
      ),
    signUp: (sluice, name) => drizzle.signUp(db, sluice, name),
    close,
  };
}

function openDrizzleOnPg(url: string): Library {
  const pool = poolOf(url);
  return onDrizzle(drizzleOnPg(pool), () => pool.end());
}

function openDrizzleOnPostgresJs(url: string): Library {
  const sql = postgres(url, { max: 3, onnotice: () => {} });
  return onDrizzle(drizzleOnPostgresJs(sql), () => sql.end());
}

function openKysely(url: string): Library {
  const db = new Kysely<kysely.Tables>({ dialect: new PostgresDialect({ pool: poolOf(url) }) });
  return {
    transaction: (fn) =>
      db.transaction().execute((trx) =>
        fn({
          tx: fromKysely(trx),
          insert: async (name) => void (await trx.insertInto("account").values({ name }).execute()),
        }),
      ),
    signUp: (sluice, name) => kysely.signUp(db, sluice, name),
    close: () => db.destroy(),
  };
}

function onKnex(url: string): Library {
  const db = openKnex({ client: "pg", connection: url, pool: { min: 0, max: 3 } });
  return {
    transaction: (fn) =>
      db.transaction((trx) =>
        fn({
          tx: fromKnex(trx),
          insert: async (name) => void (await trx("account").insert({ name })),
        }),
      ),
    signUp: (sluice, name) => knex.signUp(db, sluice, name),
    close: () => db.destroy(),
  };
}

/** The libraries that need no preparation. */
export const libraries: Readonly<Record<string, (url: string) => Library>> = {
  "pg, a pool's client": pgPool,
  "pg, a client": pgClient,
  "postgres.js": openPostgresJs,
  "Drizzle on node-postgres": openDrizzleOnPg,
  "Drizzle on postgres-js": openDrizzleOnPostgresJs,
  Kysely: openKysely,
  Knex: onKnex,
};
