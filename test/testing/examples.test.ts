import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { spawnTs } from "../support/process.js";

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

/** An example as a user would write it. */
const published = (file: string): string =>
  textOf(`examples/testing/${file}`)
    .replaceAll('"../../src/index.js"', '"sluice"')
    .replaceAll('"../../src/testing/index.js"', '"sluice/testing"')
    .trimEnd();

test("the testing example for node:test passes under node --test", async () => {
  const { child, exit } = spawnTs("--test", ["--test-reporter=tap", "examples/testing/node.test.ts"]);
  let out = "";
  child.stdout!.on("data", (chunk: Buffer) => (out += chunk.toString()));
  expect([await exit, out]).toEqual([0, expect.stringMatching(/^# pass 2$/m)]);
});

test("the testing example for vitest is part of this run", () => {
  const runner = textOf("test/testing/vitest-example.test.ts");
  expect(runner).toContain('import "../../examples/testing/vitest.test.js";');
});

test("the testing guide shows every file of the examples exactly", () => {
  const guide = textOf("docs/start/testing.md");
  const files = readdirSync(new URL("../../examples/testing/", import.meta.url));
  expect(files.toSorted()).toEqual(["invoices.ts", "node.test.ts", "outbox.ts", "vitest.test.ts"]);
  for (const file of files) expect(guide, file).toContain(published(file));
});

test("the testing guide names every value that sluice/testing exports and every outcome", async () => {
  const guide = textOf("docs/start/testing.md");
  const values = Object.keys(await import("../../src/testing/index.js"));
  const outcomes = ["retry", "snooze", "released", "crashed", "lease_lost", "refused"];
  expect([...values, ...outcomes].filter((name) => !guide.includes(`\`${name}`))).toEqual([]);
});
