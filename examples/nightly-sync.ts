import assert from "node:assert/strict";
import { Sluice, fixed, task, type, workflow } from "../src/index.js";

// Every night: list the accounts, sync them three at a time, and report what came of it. An account that
// cannot be synced does not hold up the others, and what has succeeded is not done again.
const listAccounts = task("list-accounts", {
  input: type<{ region: string }>(),
  output: type<{ accounts: { id: string }[] }>(),
});
const syncAccount = task("sync-account", {
  input: type<{ account: string }>(),
  output: type<{ rows: number }>(),
  retry: { attempts: 2, backoff: fixed(20) },
});
const writeReport = task("write-report", {
  input: type<{ rows: ({ rows: number } | null)[]; failed: number }>(),
  output: type<{ rows: number }>(),
});

// The definition runs once, now. Its values are references, and what is stored are their paths.
const nightly = workflow("nightly", { input: type<{ region: string }>() }, (w, input) => {
  const list = w.task("list", listAccounts, { region: input.region });
  const sync = w.each("sync", syncAccount, list.accounts, (one) => ({ account: one.id }), {
    window: 3,
    onError: "collect",
  });
  const report = w.task("report", writeReport, {
    rows: sync.results,
    failed: sync.counts.failed,
  });
  return { rows: report.rows, failed: sync.counts.failed };
});

const ACCOUNTS = 12;
let running = 0;
let peak = 0;
const synced = new Map<string, number>();
const handlers = [
  listAccounts.handle(({ region }) => ({
    accounts: Array.from({ length: ACCOUNTS }, (_, i) => ({ id: `${region}-${i}` })),
  })),
  syncAccount.handle(async ({ account }, ctx) => {
    peak = Math.max(peak, ++running);
    try {
      await new Promise((resolve) => setTimeout(resolve, 20));
      // One account is broken for good, another needs a second attempt.
      if (account === "eu-7") throw new Error("no such account");
      if (account === "eu-3" && ctx.attempt === 1) throw new Error("try again");
      synced.set(account, (synced.get(account) ?? 0) + 1);
      return { rows: 10 };
    } finally {
      running--;
    }
  }),
  writeReport.handle(({ rows }) => ({
    rows: rows.reduce((sum, one) => sum + (one?.rows ?? 0), 0),
  })),
];

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
for (const name of ["one", "two"]) await sluice.worker({ name, handlers }).start();

// The key makes a second start of the same night find the first.
const night = { idempotencyKey: `nightly:${crypto.randomUUID()}` };
const run = await sluice.start(nightly, { region: "eu" }, night);
const again = await sluice.start(nightly, { region: "eu" }, night);
const seen: number[] = [];
for await (const { progress } of run.watch()) seen.push(progress);
const { rows, failed } = await run.result();
const status = await run.status();
await sluice.close();

console.log(`two starts, ${new Set([run.id, again.id]).size} run`);
console.log(status!.nodes.map(({ name, state }) => `${name} ${state}`).join(", "));
console.log(`${rows} rows of ${synced.size} accounts, ${failed} failed`);
console.log(`more than 3 accounts at once: ${peak > 3 ? "yes" : "never"}`);
assert.equal(seen.at(-1), 1, "the watcher must see the end");
assert.ok(again.existed);
assert.ok(peak <= 3);
assert.equal(rows, 10 * (ACCOUNTS - 1));
assert.ok([...synced.values()].every((times) => times === 1));
