import type { Mailer } from "./invoices.js";

/** A mailer for tests: keeps what was sent under each key, and can be out of order. */
export class Outbox implements Mailer {
  readonly sent = new Map<string, string>();
  calls = 0;
  broken = false;

  async send({ key, to, text }: { key: string; to: string; text: string }): Promise<void> {
    this.calls++;
    if (this.broken) throw new Error("the mail service is down");
    this.sent.set(key, `${to}: ${text}`);
  }
}
