import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import pg from "pg";
import { startEmbedded } from "../src/embedded/index.js";
import { Sluice, fixed, task, type } from "../src/index.js";

// A payment is asked for twice, the provider times out after it has charged, and the first attempt
// to write the ledger fails: still there is exactly one charge and exactly one row.
const pay = task("pay-invoice", {
  input: type<{ invoice: string; cents: number }>(),
  output: type<{ charge: string }>(),
  retry: { attempts: 5, backoff: fixed(20) },
});

// The provider, as most of them are: it remembers requests by the key that the caller sends along.
const charges = new Map<string, string>();
let requests = 0;
async function chargeCard(key: string): Promise<string> {
  requests++;
  const known = charges.get(key);
  if (known !== undefined) return known;
  charges.set(key, `charge-${charges.size + 1}`);
  throw new Error("timeout: it is unknown whether the card was charged");
}

const server = process.env["DATABASE_URL"] ? null : await startEmbedded();
const pool = new pg.Pool({ connectionString: server?.url ?? process.env["DATABASE_URL"] });
// What breaks while nobody uses it is replaced; without a listener it would end the process.
pool.on("error", () => {});
const sluice = await Sluice.connect({ pool });
await pool.query(`
  drop table if exists example_ledger;
  create table example_ledger (invoice text not null, cents int not null, charge text not null)`);

let ledgerFailures = 1;
const worker = sluice.worker({
  handlers: [
    pay.handle(async ({ invoice, cents }, ctx) => {
      console.log(`attempt ${ctx.attempt}`);
      // ctx.idempotencyKey is the same in every attempt, so the provider knows a repeated request for
      // what it is. (ctx.claim is new in every run: it tells runs apart, for fencing off an old one.)
      const charge = await chargeCard(ctx.idempotencyKey);
      // The commit of this transaction completes the task: both happen, or neither does.
      return ctx.transaction(async (tx) => {
        const row = "insert into example_ledger (invoice, cents, charge) values ($1, $2, $3)";
        await tx.query(row, [invoice, cents, charge]);
        if (ledgerFailures-- > 0) throw new Error("failed after the ledger was written");
        return { charge };
      });
    }),
  ],
});
await worker.start();

// Somebody clicks twice. The key makes the second request find the first one's task.
const invoice = randomUUID();
const click = () =>
  sluice.enqueue(pay, { invoice, cents: 4_200 }, { idempotencyKey: `pay:${invoice}` });
const first = await click();
const second = await click();
const results = [await first.result(), await second.result()];

const { rows } = await pool.query<{ charge: string }>("select charge from example_ledger");
await sluice.close();
await pool.end();
await server?.stop();

console.log(`clicks: 2, tasks: ${new Set([first.id, second.id]).size}`);
console.log(`requests to the provider: ${requests}, charges: ${charges.size}`);
console.log(`rows in the ledger: ${rows.length}`);
assert.equal(second.id, first.id);
assert.equal(second.existed, true);
assert.equal(requests, 3);
assert.deepEqual([...charges.values()], ["charge-1"]);
assert.deepEqual(rows, [{ charge: "charge-1" }]);
assert.deepEqual(results, [{ charge: "charge-1" }, { charge: "charge-1" }]);
