import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { task, type } from "../../src/index.js";
import { scene } from "../flow/scene.js";
import { freshDatabase } from "../support/database.js";
import { spawnTs } from "../support/process.js";

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = textOf("docs/operate/tracing.md");

test("the tracing page shows the example and its output exactly", async () => {
  const example = textOf("examples/tracing.ts").replace('"../src/index.js"', '"sluice"');
  expect(page).toContain(`\`\`\`ts\n${example}\`\`\``);
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  const { child, exit } = spawnTs("examples/tracing.ts", [], { DATABASE_URL: database.url });
  let printed = "";
  child.stdout!.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  expect(await exit).toBe(0);
  expect(page).toContain(`It prints\n\n\`\`\`\n${printed}\`\`\``);
});

test("the SQL on the tracing page enqueues with a trace", async () => {
  const [, sql] = /```sql\n([\s\S]+?)```/.exec(page) ?? [];
  const s = await scene({ listen: false });
  await s.sluice.sync([task("send-mail", { input: type<{ to: string }>() })]);
  await s.sql.query(sql!);
  const { rows } = await s.sql.query<{ trace: string }>("select trace from sluice.task");
  expect(rows).toEqual([{ trace: /traceparent => '(.+)'/.exec(sql!)![1] }]);
});
