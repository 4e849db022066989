// The README's quickstart in plain JavaScript.
import { Sluice, limit, task } from "sluice";

const mails = limit("mails", { total: 5 });
const sendMail = task("send-mail", {
  input: {
    "~standard": {
      version: 1,
      vendor: "by hand",
      validate: (mail) =>
        typeof mail?.account === "string" ? { value: mail } : { issues: [{ message: "an account is needed" }] },
    },
  },
  order: (mail) => mail.account,
  limits: [mails],
});

const sluice = await Sluice.connect({ embedded: !process.env.DATABASE_URL });
const worker = sluice.worker({
  handlers: [
    sendMail.handle(({ account, subject }, ctx) => {
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
