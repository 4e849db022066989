import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startEmbedded, type Embedded } from "../../src/embedded/index.js";
import { Sluice, task } from "../../src/index.js";

// Prepared transactions need a setting that requires a restart of the server.
let server: Embedded;
let sluice: Sluice;
beforeAll(async () => {
  server = await startEmbedded({ settings: { max_prepared_transactions: "2", fsync: "off" } });
  sluice = await Sluice.connect({ url: server.url });
});
afterAll(async () => {
  await sluice.close();
  await server.stop();
});

test("an enqueue in a prepared transaction runs after the transaction commits", async () => {
  const late = task("late");
  const worker = sluice.worker({ handlers: [late.handle(() => "done")], pollIntervalMs: 50 });
  await worker.start();
  const client = new pg.Client(server.url);
  client.on("error", () => {});
  await client.connect();
  const asleep = "select from sluice.worker where asleep";
  await expect.poll(async () => (await client.query(asleep)).rowCount).toBe(1);

  await client.query("begin");
  await sluice.enqueue(late, undefined, { tx: client });
  await expect(client.query("prepare transaction 'rung'")).rejects.toThrow(/NOTIFY/);

  await client.query("begin; set local sluice.ring = off");
  const handle = await sluice.enqueue(late, undefined, { tx: client });
  await client.query("prepare transaction 'quiet'");
  expect(await handle.status()).toBeNull();
  await client.query("commit prepared 'quiet'");
  expect(await handle.result()).toBe("done");
  await client.end();
  await worker.stop();
});
