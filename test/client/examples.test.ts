import { readdirSync } from "node:fs";
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
};

/** What an example prints until it ends by itself. */
async function run(example: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const { child, exit } = spawnTs(`examples/${example}`, [], env);
  let [out, err] = ["", ""];
  child.stdout!.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString()));
  expect([await exit, err]).toEqual([0, ""]);
  return out.trimEnd().split("\n");
}

function expectShown(example: string, lines: readonly string[]): void {
  const wanted: unknown[] = shown[example]!.map((line) =>
    typeof line === "string" ? line : expect.stringMatching(line),
  );
  expect(lines).toEqual(wanted);
}

test("every example is run here", () => {
  const examples = new URL("../../examples/", import.meta.url);
  expect(readdirSync(examples).toSorted()).toEqual(Object.keys(shown).toSorted());
});

test.each(Object.keys(shown))("%s runs on DATABASE_URL and ends by itself", async (example) => {
  const database = await freshDatabase();
  expectShown(example, await run(example, { DATABASE_URL: database.url }));
  await database.drop();
});

test("the quickstart needs nothing but npm install: it brings its own PostgreSQL", async () => {
  expectShown("quickstart.ts", await run("quickstart.ts", { DATABASE_URL: undefined }));
});
