import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { docsPages, pageText } from "../support/markdown.js";

const root = new URL("../../", import.meta.url);
// ARCHITECTURE.md says that TypeScript paths start at src/ and SQL paths at src/postgres/functions/.
const starts = ["", "src/", "src/postgres/functions/"];

/** The texts in backticks on a page that look like the path of a file or folder. */
function pathsIn(text: string): string[] {
  const code = text.replaceAll(/```[\s\S]*?```/g, "").matchAll(/`([^`\n]+)`/g);
  return [...code]
    .map(([, path]) => path!)
    .filter((path) => /^[\w./-]+(?:\.(?:ts|sql|md|mjs)|\/)$/.test(path));
}

const exists = (path: string): boolean =>
  starts.some((start) => existsSync(new URL(start + path, root)));

test("every path that ARCHITECTURE.md names exists", () => {
  const paths = pathsIn(pageText("ARCHITECTURE.md"));
  expect(paths.length).toBeGreaterThan(60);
  expect(paths.filter((path) => !exists(path))).toEqual([]);
});

/** The repository paths that a page has in backticks, except those that it calls gone: `src/old.ts` (gone). */
function repositoryPathsIn(text: string): string[] {
  const named = text.matchAll(
    /`((?:src|test|fault|scripts|bench|docs|examples)\/[\w./-]+)`(?! \(gone\))/g,
  );
  return [...named].map(([, path]) => path!);
}

const missingFrom = (page: string): string[] =>
  repositoryPathsIn(pageText(page)).filter((path) => !existsSync(new URL(path, root)));

// The benchmark writes its own pages.
const internals = docsPages().filter((page) => /^docs\/internals\/(?!bench\/)/.test(page));

test.each(internals)("every path that %s names exists, or is said to be gone", (page) => {
  expect(missingFrom(page)).toEqual([]);
});

test.each([
  "limits",
  "enqueue",
  "workers",
  "keeper",
  "workflows",
  "explain",
  "pressure",
  "performance",
  "proof",
  "attacks",
])("docs/internals/%s.md names the files that it explains", (page) => {
  expect(repositoryPathsIn(pageText(`docs/internals/${page}.md`)).length).toBeGreaterThan(0);
});

test("the check of paths covers the decision records and skips only what is said to be gone", () => {
  const decisions = internals.filter((page) => page.startsWith("docs/internals/decisions/"));
  expect(decisions.length).toBeGreaterThan(25);
  expect(decisions.flatMap((page) => repositoryPathsIn(pageText(page))).length).toBeGreaterThan(3);
  expect(repositoryPathsIn("`src/a.ts` calls `src/b.ts` (gone), not `test/c`")).toEqual([
    "src/a.ts",
    "test/c",
  ]);
});

test("docs/internals/attacks.md lists exactly the attacks that tests replay", () => {
  const tested = [...pageText("test/postgres/attacks.test.ts").matchAll(/"attack (\d+):/g)].map(
    ([, n]) => Number(n),
  );
  const listed = [...pageText("docs/internals/attacks.md").matchAll(/^\| (\d+) \|/gm)].map(
    ([, n]) => Number(n),
  );
  expect(listed).toEqual([...new Set(tested)].toSorted((a, b) => a - b));
});

test("ARCHITECTURE.md names every table of the schema", () => {
  const text = pageText("ARCHITECTURE.md");
  const tables = [
    ...pageText("src/postgres/migrations/0001_tables.sql").matchAll(/create table sluice\.(\w+)/g),
  ];
  const missing = tables
    .map(([, name]) => name!)
    .filter((name) => !name.startsWith("workflow_") && !text.includes(`\`${name}\``));
  expect(missing).toEqual([]);
});
