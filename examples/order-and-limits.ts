import { setTimeout } from "node:timers/promises";
import { Sluice, limit, task, type } from "../src/index.js";

// 30 invoices of 3 accounts in 2 shops. Each account's run one after the other, a shop has at most
// 3 at once, and the printer takes 4 in all.
const shop = limit("shop", { perKey: 3 });
const printer = limit("printer", { total: 4 });
const print = task("print", {
  input: type<{ account: string; shop: string; page: number }>(),
  order: (invoice) => invoice.account,
  limits: [{ limit: shop, key: (invoice) => invoice.shop }, printer],
});

let running = 0;
let most = 0;
let meet = (): void => {};
const met = new Promise<void>((resolve) => (meet = resolve));
const pages = new Map<string, number[]>();

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
const worker = sluice.worker({
  handlers: [
    print.handle(async ({ account, page }) => {
      most = Math.max(most, ++running);
      // The first ones stay until one of every account is here, or a while: there shall be something to see.
      if (running === 3) meet();
      await Promise.race([met, setTimeout(2_000, null, { ref: false })]);
      await setTimeout(5);
      pages.set(account, [...(pages.get(account) ?? []), page]);
      running--;
    }),
  ],
});
await worker.start();

const invoices = Array.from({ length: 30 }, (_, i) => ({
  account: `account-${i % 3}`,
  shop: `shop-${i % 2}`,
  page: Math.floor(i / 3),
}));
const many = await sluice.enqueueMany(print, invoices);
for (const id of many) await sluice.task(id).result();

for (const account of [...pages.keys()].toSorted()) {
  console.log(`${account}: ${pages.get(account)!.join(" ")}`);
}
console.log(`at most ${most} at once`);

// An operator may change a number at any time, for everyone; 0 pauses.
await sluice.limits.set("printer", { total: 0 });
const waiting = await sluice.enqueue(print, { account: "account-0", shop: "shop-0", page: 10 });
console.log(`while paused: ${(await waiting.status())?.state}`);
await sluice.limits.set("printer", { total: "declared" });
await waiting.result();
console.log(`resumed: ${(await waiting.status())?.state}`);
await sluice.close();
