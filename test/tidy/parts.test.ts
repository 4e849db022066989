import { expect, test } from "vitest";
import { exportsOf, importsOf } from "./modules.js";
import { partsOf } from "./source.js";

test("the source scanner drops comments, keeps strings and confuses neither with the other", () => {
  const text = [
    'const a = "// no comment"; // "no string"',
    "/* `none` */ const b = /[\"'`]/.test(c) ? `select ${d}` : 'e';",
  ].join("\n");
  const { code, strings } = partsOf(text);
  expect(strings).toEqual(["// no comment", "select ${d}", "e"]);
  expect(code).toContain('"// no comment"');
  expect(code).not.toContain("no string");
});

test("the source scanner finds imports and exports of a file", () => {
  const path = "test/tidy/modules.ts";
  expect(importsOf(path)).toEqual([
    { from: "node:path", names: ["posix"], typeOnly: false },
    { from: "test/tidy/source.ts", names: ["partsOf", "textOf"], typeOnly: false },
  ]);
  expect(exportsOf(path)).toEqual(["Import", "importsOf", "exportsOf"]);
});
