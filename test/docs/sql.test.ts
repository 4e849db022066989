import { transform } from "esbuild";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import * as zod from "zod";
import * as client from "../../src/client.js";
import { freshDatabase } from "../support/database.js";
import { blocksOf, pageText } from "../support/markdown.js";

const { Client } = client;
const page = "docs/reference/sql.md";

/** The task that the tasks page declares, built from the text of the page. */
async function taskOfPage(): Promise<client.TaskContract> {
  const block = blocksOf("docs/concepts/tasks.md", "ts").find(({ name }) => name === "tasks")!;
  const { code } = await transform(block.code, { loader: "ts", format: "cjs" });
  const module = { exports: {} };
  const modules: Readonly<Record<string, unknown>> = { zod, "sluice/client": client };
  // oxlint-disable-next-line typescript/no-implied-eval -- the page is part of this repository
  const run = new Function("module", "exports", "require", code);
  run(module, module.exports, (name: string) => modules[name]);
  return (module.exports as { sendInvoice: client.TaskContract }).sendInvoice;
}

/** A database with the declared task of the page, and a connection to it. */
async function declared(): Promise<{ producer: client.Client; sql: pg.Pool }> {
  const database = await freshDatabase({ migrated: true });
  onTestFinished(() => database.drop());
  const producer = await Client.connect({ url: database.url, migrate: false, listen: false });
  onTestFinished(() => producer.close());
  await producer.sync([await taskOfPage()]);
  const sql = new pg.Pool({ connectionString: database.url, max: 1 });
  sql.on("error", () => {});
  onTestFinished(() => sql.end());
  return { producer, sql };
}

const blocks = blocksOf(page, "sql").map(({ code }) => code);

test("the first statement on docs/reference/sql.md enqueues the task that the tasks page declares", async () => {
  const { producer, sql } = await declared();
  const { rows } = await sql.query<{ enqueue: string }>(blocks[0]!);
  expect((await producer.task(rows[0]!.enqueue).status())?.type).toBe("send-invoice");
});

test("every SQL block on docs/reference/sql.md runs, in page order", async () => {
  const { producer, sql } = await declared();
  for (const block of blocks) await sql.query(block);
  // The tasks of the first statement and of the trigger: both were cancelled, and one was retried.
  expect(await producer.counts()).toMatchObject({ cancelled: 1 });
  const { rows } = await sql.query("select * from sluice.violation");
  expect(rows).toEqual([]);
});

test.each(["task_state", "schedule_status", "workflow_status", "workflow_progress", "violation"])(
  "docs/reference/sql.md names only existing columns of sluice.%s",
  async (view) => {
    const { sql } = await declared();
    const { fields } = await sql.query(`select * from sluice.${view} limit 0`);
    const columns = fields.map(({ name }) => name);
    expect(namedColumns(view).length).toBeGreaterThan(4);
    expect(namedColumns(view).filter((name) => !columns.includes(name))).toEqual([]);
  },
);

/** The first cells of the view's table. */
function namedColumns(view: string): string[] {
  const [, after] = pageText(page).split(`| column of \`${view}\` |`);
  const [table] = after!.split("\n\n");
  const cells = table!
    .split("\n")
    .slice(2)
    .map((row) => row.split(" | ")[0]!);
  return cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
}

test("docs/reference/sql.md lists every parameter of sluice.enqueue in order", async () => {
  const { sql } = await declared();
  const { rows } = await sql.query<{ names: string[] }>(
    "select proargnames as names from pg_proc where oid = 'sluice.enqueue'::regproc",
  );
  const [, section = ""] = pageText(page).split("## sluice.enqueue\n");
  const [table = ""] = section.split("\n## ");
  const named = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  expect(named).toEqual(rows[0]!.names);
});
