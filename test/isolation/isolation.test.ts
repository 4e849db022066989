import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { mutants } from "./mutants.js";
import { findTester, play, type Tester } from "./tester.js";

const folder = new URL("./", import.meta.url);
const names = readdirSync(folder)
  .filter((file) => file.endsWith(".spec"))
  .map((file) => file.slice(0, -".spec".length))
  .toSorted();

const textOf = (name: string): string => readFileSync(new URL(`${name}.spec`, folder), "utf8");
const outOf = (name: string): URL => new URL(`${name}.out`, folder);
/** The title of a specification: its first line. */
const titleOf = (name: string): string => /^# (.+)/.exec(textOf(name))?.[1] ?? name;

// Longer than isolationtester's own timeout for a step, whose message names the step.
const TIMEOUT_MS = 180_000;

let found: Promise<Tester> | undefined;
/** Called by every test and not by a hook: without isolationtester each test fails and none is skipped. */
const tester = (): Promise<Tester> => (found ??= findTester());

describe("concurrent statements:", { timeout: TIMEOUT_MS }, () => {
  for (const name of names)
    test(titleOf(name), async () => {
      const seen = await play(await tester(), textOf(name));
      // Read the output before you commit it: see README.md.
      if (process.env.SLUICE_ISOLATION_RECORD === "1") writeFileSync(outOf(name), seen);
      expect(existsSync(outOf(name)), `${name}.out is missing`).toBe(true);
      expect(seen).toBe(readFileSync(outOf(name), "utf8"));
    });
});

test("every permutation ends with a check of all tasks, and every output has a specification", () => {
  const permutations = names.flatMap((name) => textOf(name).match(/^permutation .*$/gm) ?? []);
  expect(permutations.filter((line) => !/ check\b.* drain$/.test(line))).toEqual([]);
  const outs = readdirSync(folder).filter((file) => file.endsWith(".out"));
  expect(outs.toSorted()).toEqual(names.map((name) => `${name}.out`));
});

describe("an isolation test fails when its guard is removed:", { timeout: TIMEOUT_MS }, () => {
  for (const mutant of mutants)
    test(mutant.title, async () => {
      const right = sectionOf(readFileSync(outOf(mutant.spec), "utf8"), mutant.permutation);
      const seen = await play(await tester(), only(textOf(mutant.spec), mutant.permutation), [mutant]);
      for (const line of mutant.seen) {
        expect(seen).toContain(line);
        expect(right).not.toContain(line);
      }
    });
});

/** The specification with this permutation alone. */
function only(spec: string, permutation: string): string {
  const line = `permutation ${permutation}`;
  if (!spec.split("\n").includes(line)) throw new Error(`the specification has no ${line}`);
  return `${spec.replaceAll(/^permutation .*$/gm, "")}\n${line}\n`;
}

/** The output of this permutation. Its markers in parentheses are not printed. */
function sectionOf(out: string, permutation: string): string {
  const plain = permutation.replaceAll(/\([^)]*\)/g, "");
  const sections = out.split("\nstarting permutation: ");
  const found = sections.find((section) => section.startsWith(`${plain}\n`));
  if (found === undefined) throw new Error(`no permutation ${plain} in the output`);
  return found;
}
