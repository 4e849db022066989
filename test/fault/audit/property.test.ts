import fc from "fast-check";
import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import { randomOf } from "../../../fault/random.js";
import { mutations } from "./mutations.js";
import { simTerms, simulate } from "./simulator.js";
import { foundIn } from "./story.js";

const seeds = fc.integer({ min: 0, max: 2 ** 31 });
const sizes = fc.integer({ min: 5, max: 40 });

test.each([true, false])("the audit finds nothing in the log of a correct simulated queue (calm: %s)", (calm) => {
  fc.assert(
    fc.property(seeds, sizes, (seed, size) => {
      const { lines, finished } = simulate(seed, size, calm);
      const report = audit(lines, simTerms);
      const first = Object.values(report.findings).flatMap((finding) => finding.first);
      expect([finished, first]).toEqual([true, []]);
      expect(report.acknowledged).toBe(size);
    }),
    { numRuns: 150 },
  );
});

test("the log of a disturbed simulated queue contains every kind of excuse", () => {
  const report = audit(simulate(7, 400, false).lines, simTerms);
  expect(report.violations).toBe(0);
  expect(report.recovery.count).toBeGreaterThan(0);
  expect(report.zombies.completedOutside).toBeGreaterThan(0);
  const reasons = ["its end may be unrecorded", "its lease may be lost", "its process died"];
  expect(Object.keys(report.ranAgain)).toEqual(
    expect.arrayContaining([...reasons, "retried by hand", "snoozed", "thrown"]),
  );
});

test.each(mutations.map((m) => [m.what, m] as const))("the audit finds it when %s", (_, { finds, spoil }) => {
  let spoilt = 0;
  fc.assert(
    fc.property(seeds, sizes, (seed, size) => {
      const lines = spoil(simulate(seed, size, true).lines, randomOf(seed));
      if (lines === undefined) return;
      spoilt++;
      const found = foundIn(audit(lines, simTerms));
      expect(Object.keys(found)).toEqual(expect.arrayContaining([...finds]));
    }),
    { numRuns: 100 },
  );
  expect(spoilt).toBeGreaterThan(20);
});

const always = ["lost", "acceptedTwice", "neverEnqueued"];

test.each(mutations.filter(({ finds }) => always.includes(finds[0]!)).map((m) => [m.what, m] as const))(
  "the audit finds it among faults when %s",
  (_, { finds, spoil }) => {
    fc.assert(
      fc.property(seeds, sizes, (seed, size) => {
        const lines = spoil(simulate(seed, size, false).lines, randomOf(seed));
        if (lines === undefined) return;
        const found = foundIn(audit(lines, simTerms));
        expect(Object.keys(found)).toEqual(expect.arrayContaining([...finds]));
      }),
      { numRuns: 100 },
    );
  },
);
