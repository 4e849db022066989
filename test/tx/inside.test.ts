import { drizzle } from "drizzle-orm/node-postgres";
import { knex as openKnex } from "knex";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { crash, cutReply, type TestHandler } from "../../src/testing/index.js";
import { kit } from "../testing/kit.js";
import * as inside from "./snippets/inside.js";
import { onPostgresJs } from "./snippets/once.js";
import { sendWelcome } from "./snippets/tasks.js";

const pool = (url: string): pg.Pool => new pg.Pool({ connectionString: url });
const dialect = (url: string): PostgresDialect => new PostgresDialect({ pool: pool(url) });

const builders: Readonly<Record<string, (url: string) => TestHandler>> = {
  // None of them opens a connection: they only write the SQL.
  Drizzle: (url) => inside.onDrizzle(drizzle(pool(url))),
  Kysely: (url) => inside.onKysely(new Kysely({ dialect: dialect(url) })),
  Knex: (url) => inside.onKnex(openKnex({ client: "pg", connection: url })),
};

/** A test database with the tables of the page, and what is in its table of accounts. */
async function withTables(handler: (url: string) => TestHandler) {
  const t = await kit({ handlers: (_, url) => [handler(url)] });
  const client = new pg.Client(t.url);
  await client.connect();
  await client.query("create table account (id serial primary key, name text not null)");
  await client.query("create table handled (key text primary key, at timestamptz not null default now())");
  const names = async (): Promise<string[]> =>
    (await client.query<{ name: string }>("select name from account order by id")).rows.map(({ name }) => name);
  return { t, names, end: () => client.end() };
}

test.each(Object.entries(builders))(
  "SQL that %s has written runs in the transaction that completes the task, exactly once",
  async (_, handler) => {
    const { t, names, end } = await withTables(handler);
    await t.sluice.enqueue(sendWelcome, { account: 1, name: "Ada" });
    const { ran } = await t.drain({ faults: [cutReply(sendWelcome, "claim"), crash(sendWelcome)] });
    expect(ran.map(({ outcome }) => outcome)).toEqual(["released", "succeeded"]);
    expect(await names()).toEqual(["Ada"]);
    await end();
  },
);

test("a handler that stores its idempotency key with its writes makes them once, though it runs twice", async () => {
  let sql: postgres.Sql;
  const { t, names, end } = await withTables((url) => onPostgresJs((sql = postgres(url, { max: 1 }))));
  onTestFinished(() => sql.end());
  await t.sluice.enqueue(sendWelcome, { account: 1, name: "Ada" });
  const { ran } = await t.drain({ faults: [crash(sendWelcome)] });
  expect(ran.map(({ outcome }) => outcome)).toEqual(["crashed", "succeeded"]);
  expect(await names()).toEqual(["Ada"]);
  await sql!.end();
  await end();
});
