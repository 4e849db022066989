import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const page = readFileSync(new URL("../../docs/guarantees.md", import.meta.url), "utf8");
const proofs = [...page.matchAll(/^- `(test\/[^`]+)`: "(.+)"$/gm)].map(([, file, name]) => ({
  file: file!,
  name: name!,
}));

test("docs/guarantees.md names tests as proof", () => {
  expect(proofs.length).toBeGreaterThan(20);
});

test.each(proofs)("$file has the test that docs/guarantees.md names: $name", ({ file, name }) => {
  const path = new URL(`../../${file}`, import.meta.url);
  expect(existsSync(path), file).toBe(true);
  expect(readFileSync(path, "utf8")).toContain(`"${name}"`);
});

test("docs/guarantees.md names every kind of audit finding", () => {
  const report = readFileSync(new URL("../../fault/audit/report.ts", import.meta.url), "utf8");
  const list = /VIOLATIONS = \[([^\]]+)\]/.exec(report)![1]!;
  const kinds = [...list.matchAll(/"(\w+)"/g)].map(([, kind]) => kind!);
  expect(kinds.length).toBeGreaterThan(10);
  expect(kinds.filter((kind) => !page.includes(`\`${kind}\``))).toEqual([]);
});
