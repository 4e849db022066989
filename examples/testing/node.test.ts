import assert from "node:assert/strict";
import { test } from "node:test";
import { cutReply, loseLease, stall, testSluice } from "../../src/testing/index.js";
import { sendInvoice, sendInvoiceBy } from "./invoices.js";
import { Outbox } from "./outbox.js";

await test("an invoice is sent once, whatever happens to its worker", async (context) => {
  const mailer = new Outbox();
  const t = await testSluice({ handlers: [sendInvoiceBy(mailer)] });
  context.after(() => t.close());

  await t.sluice.enqueue(sendInvoice, { account: "ada", cents: 100 });
  const faults = [stall(sendInvoice), loseLease(sendInvoice), cutReply(sendInvoice)];
  const { ran } = await t.drain({ faults });
  assert.deepEqual(
    ran.map((execution) => execution.outcome),
    ["refused", "lease_lost", "succeeded"],
  );
  assert.deepEqual([mailer.calls, mailer.sent.size], [3, 1]);
});

await test("invoices of one account are sent in order, one at a time", async (context) => {
  const mailer = new Outbox();
  const t = await testSluice({ handlers: [sendInvoiceBy(mailer)] });
  context.after(() => t.close());

  for (const cents of [1, 2, 3]) await t.sluice.enqueue(sendInvoice, { account: "bob", cents });
  await t.drain();
  const mails = [1, 2, 3].map((cents) => `bob: ${cents} cents, please`);
  assert.deepEqual([...mailer.sent.values()], mails);
  await t.expectEnqueued(sendInvoice, { account: "bob" }, { times: 3, state: "succeeded" });
});
