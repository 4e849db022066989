import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { faults } from "../../../fault/faults/index.js";

const readme = readFileSync(new URL("../../../fault/README.md", import.meta.url), "utf8");

test("every fault has a unique name", () => {
  const names = faults.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[a-z]+(-[a-z]+)*$/);
});

test("every fault has a description of one line", () => {
  for (const { name, about } of faults) {
    expect(about.length, name).toBeGreaterThan(20);
    expect(about, name).not.toContain("\n");
  }
});

test("the README names every fault, and no other", () => {
  const named = [...readme.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name);
  expect(named).toEqual(faults.map(({ name }) => name));
});
