import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { whyStuck } from "../../fault/stuck.js";
import { Sluice, task, type } from "../../src/index.js";
import { freshDatabase } from "../support/database.js";

test("what is left is told with its type and place", async () => {
  const database = await freshDatabase({ migrated: true });
  const { url } = database;
  const sluice = await Sluice.connect({ url });
  const sql = new pg.Pool({ connectionString: url });
  onTestFinished(async () => {
    await sluice.close();
    await sql.end();
    await database.drop();
  });
  const mail = task("mail", { input: type<number>(), concurrency: 3 });
  await sluice.enqueueMany(mail, [1, 2]);
  const lines = (await whyStuck({ sql })).join("\n");
  expect(lines).toMatch(
    /left, by type and place:\n {2}\{"n": 2, "type": "mail", "first": \d+, "place": "ready"\}/,
  );
  expect(lines).toMatch(/gates:\n.*"cap": 3.*"name": "mail"/);
});
