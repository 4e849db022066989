import { expect, test } from "vitest";
import { issueClaim } from "../../src/core/claim.js";
import { terminal } from "../../src/core/state.js";

test.each([
  ["scheduled", false],
  ["waiting", false],
  ["ready", false],
  ["running", false],
  ["succeeded", true],
  ["failed", true],
  ["cancelled", true],
] as const)("a %s task is finished: %s", (state, over) => expect(terminal(state)).toBe(over));

test("a claim consists of an id and a token", () => {
  expect(issueClaim("1", "t")).toEqual({ id: "1", token: "t" });
});
