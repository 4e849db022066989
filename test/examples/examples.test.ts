import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.js";
import { spawnTs } from "../support/process.js";

const shown: Record<string, (string | RegExp)[]> = {
  "quickstart.ts": ["to ada: Welcome (attempt 1)", /^sent at 20\d\d-/],
  "order-and-limits.ts": [
    "account-0: 0 1 2 3 4 5 6 7 8 9",
    "account-1: 0 1 2 3 4 5 6 7 8 9",
    "account-2: 0 1 2 3 4 5 6 7 8 9",
    "at most 3 at once",
    "while paused: waiting",
    "resumed: succeeded",
  ],
  "transactional-outbox.ts": [
    "ada@example.com orders 2: 201",
    "bob@example.com orders 4: 409",
    "eve@example.com orders 3: 201",
    "orders: ada@example.com, eve@example.com",
    "mails:  ada@example.com, eve@example.com",
  ],
  "per-tenant-limits.ts": [
    "at most 2 at once for one tenant, 4 for all",
    "small and tiny finished before half of the flood",
  ],
  "ordered-webhooks.ts": [
    "/a: 1 2 3 4 5",
    "/b: 1 2 3 4 5",
    "/c: 1 2 3 4 5",
    "/b was down and delayed only its own webhooks",
    "3 endpoints at once",
  ],
  "idempotent-payment.ts": [
    "attempt 1",
    "attempt 2",
    "attempt 3",
    "clicks: 2, tasks: 1",
    "requests to the provider: 3, charges: 1",
    "rows in the ledger: 1",
  ],
  "scheduled-report.ts": [
    "nightly-report: next at 03:00 in Berlin",
    "nightly-report: ran once by hand",
    "report-each-second: every tick ran exactly once",
  ],
  "nightly-sync.ts": [
    "two starts, 1 run",
    "list succeeded, sync succeeded, report succeeded",
    "110 rows of 11 accounts, 1 failed",
    "more than 3 accounts at once: never",
  ],
  "image-pipeline.ts": [
    "6 images in 3 sizes: 18 files published",
    "files created: 18",
    "more handlers at once than permits: never",
  ],
  "order-fulfilment.ts": [
    "small: succeeded, shipped with receipt of small",
    "large: succeeded, shipped with receipt of large",
    "forgotten: failed, released: nobody approved",
    "no-money: succeeded, released: the card was refused",
    "large was approved by ada, small needed no approval",
  ],
  "cpu-bound.ts": [
    /^\d+ tasks in \d+ threads$/,
    /^a task takes \d+ ms of CPU$/,
    /^a turn of the event loop took \d+ ms \(median\)$/,
    "the event loop ran during every task",
    /^endless task: task \d+ failed: the handler took longer than 200 ms$/,
  ],
  "tracing.ts": [
    "POST /orders: internal, parent none, links to none",
    "enqueue send-mail: producer, parent POST /orders, links to none",
    "run send-mail: consumer, parent none, links to enqueue send-mail",
    "smtp: internal, parent run send-mail, links to none",
  ],
  "pressure.ts": [
    /^2000 tasks of 1 KB and 200 of 100 KB at once, in a (control group of 256|heap of 128) MB$/,
    /^memory: at most \d+ MB of 256 \(RSS\)$/,
    /^in flight: at most \d+ of 1000$/,
    /^claims: at most \d+ tasks each$/,
    /^claims were limited by: /,
  ],
  "graceful-shutdown.ts": [
    /^first container: exit 0, [234] of 6 documents done$/,
    "the others: ready, 0 attempts used",
    "second container: exit 0, done in attempt 1 1 1 1 1 1",
  ],
};
// Options that shorten examples from minutes to seconds.
const small: Record<string, string[]> = { "pressure.ts": ["--small"] };
// Examples with failing tasks, about which the worker logs at most a line a second, besides final failures.
const failing = [
  "ordered-webhooks.ts",
  "idempotent-payment.ts",
  "cpu-bound.ts",
  "nightly-sync.ts",
  "order-fulfilment.ts",
];
// Workers should not warn about a machine that is busy with other tests.
const calm = { SLUICE_PRESSURE_EVENT_LOOP_DELAY_MS_MAX: "false" };
// Some examples start several processes and a server.
const TIMEOUT_MS = 120_000;
const complaints = /^(\{"sluice":"a task failed( for good| and will be retried)",.+\}\n)+$/;

/** The output lines of an example that ends by itself. */
async function run(example: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const more = example === "pressure.ts" ? {} : calm;
  const { child, exit } = spawnTs(`examples/${example}`, small[example] ?? [], { ...env, ...more });
  let [out, err] = ["", ""];
  child.stdout!.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const said: unknown = failing.includes(example) ? expect.stringMatching(complaints) : "";
  expect([await exit, err]).toEqual([0, said]);
  return out.trimEnd().split("\n");
}

function expectShown(example: string, lines: readonly string[]): void {
  const wanted: unknown[] = shown[example]!.map((line) =>
    typeof line === "string" ? line : expect.stringMatching(line),
  );
  expect(lines).toEqual(wanted);
}

const folder = new URL("../../examples/", import.meta.url);

test("every example has a test with its expected output", () => {
  const examples = readdirSync(folder).filter((file) => file.endsWith(".ts"));
  expect(examples.toSorted()).toEqual(Object.keys(shown).toSorted());
});

test("examples/README.md lists every example with its command", () => {
  const readme = readFileSync(new URL("README.md", folder), "utf8");
  const missing = Object.keys(shown).filter(
    (example) => !readme.includes(`[${example}](${example})`) || !readme.includes(`npx tsx examples/${example}`),
  );
  expect(missing).toEqual([]);
});

test.each(Object.keys(shown))(
  "the example %s runs on DATABASE_URL and ends by itself",
  async (example) => {
    const database = await freshDatabase();
    expectShown(example, await run(example, { DATABASE_URL: database.url }));
    await database.drop();
  },
  TIMEOUT_MS,
);

test.each(["quickstart.ts", "transactional-outbox.ts", "graceful-shutdown.ts"])(
  "the example %s runs on the embedded PostgreSQL without DATABASE_URL",
  async (example) => {
    expectShown(example, await run(example, { DATABASE_URL: undefined }));
  },
  TIMEOUT_MS,
);
