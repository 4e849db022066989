import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

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
