import { readFileSync } from "node:fs";
import { transform } from "esbuild";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { Client, exponential, limit, task, type, type TaskContract } from "../../src/client.js";
import { freshDatabase } from "../support/database.js";

const textOf = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

test("the README shows the quickstart that runs in CI, word for word", () => {
  const example = textOf("examples/quickstart.ts").replace('"../src/index.js"', '"sluice"');
  expect(textOf("README.md")).toContain(example.trimEnd());
});

test("the README's first code stands before line 15", () => {
  const lines = textOf("README.md").split("\n");
  expect(lines.findIndex((line) => line.startsWith("```ts"))).toBeLessThan(15);
});

/** The task that the README shows, as its own words make it. */
async function tasksOfReadme(): Promise<{ sendInvoice: TaskContract }> {
  const [, shown] = /```ts\n(const mail = limit[\s\S]*?)```/.exec(textOf("README.md")) ?? [];
  const { code } = await transform(shown!, { loader: "ts", format: "cjs" });
  const module = { exports: {} };
  // oxlint-disable-next-line typescript/no-implied-eval -- the README is ours
  const run = new Function("module", "exports", "z", "limit", "task", "type", "exponential", code);
  run(module, module.exports, z, limit, task, type, exponential);
  return module.exports as { sendInvoice: TaskContract };
}

test("the README's SQL enqueues the README's task", async () => {
  const { sendInvoice } = await tasksOfReadme();
  const [, sql] = /`(select sluice\.enqueue\(.*?\))`/.exec(textOf("README.md")) ?? [];
  const database = await freshDatabase({ migrated: true });
  onTestFinished(() => database.drop());
  const client = await Client.connect({ url: database.url, migrate: false, listen: false });
  onTestFinished(() => client.close());
  await client.sync([sendInvoice]);
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  const { rows } = await pool.query<{ enqueue: string }>(sql!);
  expect((await client.task(rows[0]!.enqueue).status())?.type).toBe("send-invoice");
});
