import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { Database } from "../../src/postgres/database.js";
import { endBackend, OWN_TRANSACTION, type ServerTransaction } from "../../src/postgres/backend.js";
import { Connection } from "../../src/postgres/connection.js";
import { freshDatabase } from "../support/database.js";

test("endBackend ends only the abandoned transaction, not the next one of its backend", async () => {
  const database = await freshDatabase({ migrated: true });
  const db = new Database({ url: database.url });
  const line = new Connection(db, 10_000);
  const client = new pg.Client(database.url);
  client.on("error", () => {});
  await client.connect();
  onTestFinished(async () => {
    await client.end().catch(() => {});
    await line.close();
    await db.close();
    await database.drop();
  });
  const begin = async (): Promise<ServerTransaction> => {
    await client.query("begin");
    return (await client.query<ServerTransaction>(OWN_TRANSACTION)).rows[0]!;
  };
  const first = await begin();
  await client.query("rollback");
  const second = await begin();
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(second.pid).toBe(first.pid);
  expect(await endBackend(line, first)).toBe(false);
  expect(await endBackend(line, second)).toBe(true);
});
