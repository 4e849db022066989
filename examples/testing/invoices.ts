import { fixed, task, type, type Queryable, type Sluice } from "../../src/index.js";

// The code under test: what producers and workers agree on, a producer, and a handler.
export const sendInvoice = task("send-invoice", {
  input: type<{ account: string; cents: number }>(),
  order: (invoice) => invoice.account,
  retry: { attempts: 3, backoff: fixed(60_000) },
});

/** Closes an account's month in the caller's transaction: the invoice exists if and only if it commits. */
export async function closeMonth(sluice: Sluice, tx: Queryable, account: string): Promise<void> {
  await sluice.enqueue(sendInvoice, { account, cents: 4_200 }, { tx, priority: 5 });
}

/** A mail service that sends once what is asked for twice under one key. */
export interface Mailer {
  send(mail: { key: string; to: string; text: string }): Promise<void>;
}

export const sendInvoiceBy = (mailer: Mailer) =>
  sendInvoice.handle(async ({ account, cents }, ctx) => {
    // Not a random key: a second execution of the same task must find the first one's mail.
    await mailer.send({ key: ctx.idempotencyKey, to: account, text: `${cents} cents, please` });
  });
