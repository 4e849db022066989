import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { crash, testSluice, type TestSluice } from "../../src/testing/index.js";
import { closeMonth, sendInvoice, sendInvoiceBy } from "./invoices.js";
import { Outbox } from "./outbox.js";

let mailer: Outbox;
let t: TestSluice;

beforeEach(async () => {
  mailer = new Outbox();
  t = await testSluice({ handlers: [sendInvoiceBy(mailer)] });
});

afterEach(() => t.close());

test("closing a month enqueues its invoice if and only if it commits", async () => {
  const client = new pg.Client(t.url);
  await client.connect();
  await client.query("begin");
  await closeMonth(t.sluice, client, "ada");
  await t.expectEnqueued(sendInvoice, { account: "ada" }, { tx: client, priority: 5 });
  await client.query("rollback");
  await t.expectEnqueued(sendInvoice, { account: "ada" }, { times: 0 });
  await client.end();
});

test("an invoice is sent a minute after the mail service is back", async () => {
  await t.sluice.enqueue(sendInvoice, { account: "ada", cents: 100 });
  mailer.broken = true;
  const { ran } = await t.drain();
  expect(ran).toMatchObject([{ type: "send-invoice", attempt: 1, outcome: "retry" }]);

  mailer.broken = false;
  expect((await t.drain()).ran).toEqual([]);
  await t.clock.advance(60_000);
  expect((await t.drain()).ran).toMatchObject([{ attempt: 2, outcome: "succeeded" }]);
  expect([...mailer.sent.values()]).toEqual(["ada: 100 cents, please"]);
});

test("an invoice is sent once even if its worker dies after sending it", async () => {
  await t.sluice.enqueue(sendInvoice, { account: "ada", cents: 100 });
  const { ran } = await t.drain({ faults: [crash(sendInvoice)] });
  expect(ran.map((execution) => execution.outcome)).toEqual(["crashed", "succeeded"]);
  expect([mailer.calls, mailer.sent.size]).toEqual([2, 1]);
});
