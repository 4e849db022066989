import { Sluice, limit, task, type } from "../src/index.js";

// Producers and workers share this contract: at most 5 mails at once, in order per account.
const mails = limit("mails", { total: 5 });
const sendMail = task("send-mail", {
  input: type<{ account: string; subject: string }>(),
  output: type<{ sentAt: string }>(),
  order: (mail) => mail.account,
  limits: [mails],
});

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
const worker = sluice.worker({
  handlers: [
    sendMail.handle(async ({ account, subject }, ctx) => {
      console.log(`to ${account}: ${subject} (attempt ${ctx.attempt})`);
      return { sentAt: new Date().toISOString() };
    }),
  ],
});
await worker.start();

const welcome = await sluice.enqueue(sendMail, { account: "ada", subject: "Welcome" });
const { sentAt } = await welcome.result();
console.log(`sent at ${sentAt}`);
await sluice.close();
