import { expect, test } from "vitest";
import { pageText } from "../support/markdown.js";

test("the README shows the quickstart that runs in CI, word for word", () => {
  const example = pageText("examples/quickstart.ts").replace('"../src/index.js"', '"sluice"');
  expect(pageText("README.md")).toContain(example.trimEnd());
});

test("the README shows its first code before line 15", () => {
  const lines = pageText("README.md").split("\n");
  expect(lines.findIndex((line) => line.startsWith("```ts"))).toBeLessThan(15);
});

test("the README has at most 120 lines", () => {
  expect(pageText("README.md").trimEnd().split("\n").length).toBeLessThanOrEqual(120);
});
