import { expect, test } from "vitest";
import { pageText } from "../support/markdown.js";

/** The codes of the union type, read from its source. */
function codesInCode(): string[] {
  const [, union] = /export type ErrorCode =([^;]+);/.exec(pageText("src/core/error.ts"))!;
  const members = union!.split("|").map((member) => member.trim());
  return members.slice(1).map((member) => /^"([a-z_]+)"$/.exec(member)![1]!);
}

/** The first cell of every row that names a code, a cause and a remedy. */
function codesOnPage(): string[] {
  const rows = pageText("docs/reference/errors.md").matchAll(/^\| `([^`]+)` \| .+ \| .+ \|$/gm);
  return [...rows].map(([, code]) => code!);
}

test("docs/reference/errors.md lists every error code once, with a cause and a remedy", () => {
  expect(codesInCode().length).toBeGreaterThan(50);
  expect(codesOnPage().toSorted()).toEqual(codesInCode().toSorted());
});
