import pg from "pg";
import { expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "./database.js";

async function tables(database: TestDatabase): Promise<number> {
  const client = new pg.Client(database.url);
  await client.connect();
  const { rows } = await client.query<{ n: number }>(
    "select count(*)::int as n from pg_tables where schemaname = 'sluice'",
  );
  await client.end();
  return rows[0]!.n;
}

test("each test gets its own database, which is dropped afterwards", async () => {
  const [one, two] = await Promise.all([freshDatabase(), freshDatabase()]);
  expect(one.name).not.toBe(two.name);
  expect(await tables(one)).toBe(0);
  await Promise.all([one.drop(), two.drop()]);
  await expect(tables(one)).rejects.toMatchObject({ code: "3D000" });
});

test("migrated databases created at the same time all have the schema", async () => {
  const all = await Promise.all(Array.from({ length: 4 }, () => freshDatabase({ migrated: true })));
  const counts = await Promise.all(all.map((database) => tables(database)));
  expect(Math.min(...counts)).toBeGreaterThan(0);
  await Promise.all(all.map((database) => database.drop()));
});
