// Compiled, and never run: what the page of workflows shows of runs.
import type { Queryable, Sluice } from "../../src/index.js";
import { fulfil, nightly } from "./workflows.page.js";

declare const sluice: Sluice;
declare const db: Queryable;
declare const id: string;
declare const total: number;
declare const parcels: string[];

const run = await sluice.start(nightly, { region: "eu" }, { idempotencyKey: "2030-01-31" });
for await (const { progress, nodes } of run.watch()) {
  const now = nodes.filter(({ state }) => state === "running").map(({ name }) => name);
  console.log(`${Math.round(100 * progress)} %: ${now.join(", ")}`);
}
const { url, failed } = await run.result();

for (let after: number | null = -1; after !== null;) {
  const page = await run.items("sync", { state: "failed", after });
  for (const { index, task, error } of page.items) console.log(index, task, error?.message);
  after = page.after;
}

await db.query("begin");
await db.query("insert into orders (id, total) values ($1, $2)", [id, total]);
const placed = await sluice.start(fulfil, { id, total, parcels }, { tx: db });
await db.query("commit");

await placed.send("approved", { by: "ada" });

export { failed, url };
