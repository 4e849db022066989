import { spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { freshDatabase } from "../support/database.js";
import { writePrograms } from "../support/markdown.js";
import { spawnTs } from "../support/process.js";

const root = new URL("../../", import.meta.url);
const pagesIn = (folder: string): string[] =>
  readdirSync(new URL(folder, root))
    .filter((file) => file.endsWith(".md"))
    .map((file) => folder + file);

const glossary = "docs/concepts/words.md";
const concepts = pagesIn("docs/concepts/").filter((page) => page !== glossary);
const pages = ["README.md", "CONTRIBUTING.md", "docs/README.md"];
const programs = writePrograms([...pages, ...concepts, ...pagesIn("docs/reference/")]);
afterAll(() => programs.remove());

test("every TypeScript block of the README, the concepts and the reference compiles", () => {
  expect(programs.files.length).toBeGreaterThan(5);
  const tsconfig = join(programs.folder, "tsconfig.json");
  const options = { noUnusedLocals: false, noUnusedParameters: false };
  const settings = { extends: fileURLToPath(new URL("tsconfig.json", root)), include: ["."] };
  writeFileSync(tsconfig, JSON.stringify({ ...settings, compilerOptions: options }));
  const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
  const tsc = spawnSync(process.execPath, [join(typescript, "bin/tsc"), "-p", tsconfig], {
    encoding: "utf8",
    cwd: programs.folder,
  });
  expect(tsc.stdout + tsc.stderr).toBe("");
  expect(tsc.status).toBe(0);
});

// On a machine that is busy with other tests no worker should complain.
const calm = { SLUICE_PRESSURE_EVENT_LOOP_DELAY_MS_MAX: "false" };

test.each(concepts)("the program of %s runs and ends by itself", async (page) => {
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  const file = programs.fileOf(page);
  expect(file, `${page} has no program`).toBeDefined();
  const { child, exit } = spawnTs(file!, [], { DATABASE_URL: database.url, ...calm });
  let said = "";
  child.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()));
  expect([await exit, said]).toEqual([0, ""]);
});
