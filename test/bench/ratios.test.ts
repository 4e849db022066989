import { expect, test } from "vitest";
import { sharesOf } from "../../bench/src/numbers.js";
import { ratiosOf, type Row } from "../../bench/src/ratios.js";
import type { Facts } from "../../bench/src/result.js";
import { resultsOf } from "../../bench/src/results.js";
import type { Subject, Workload } from "../../bench/src/workload.js";
import { who } from "./report/sample.js";

function row(subject: ReturnType<typeof who>, values: readonly number[], facts: Facts = {}): Row {
  return { who: subject, samples: values.map((value) => ({ value, facts })) };
}

const sluice = row(who("sluice", "history off"), [100, 120, 90]);
const bare = row(who("pure-sql", "two connections"), [200, 200, 200]);
const boss = row(who("pg-boss", "tuned"), [50, 60, 10]);
const bossDefault = row(who("pg-boss", "default"), [1, 1, 45]);
const bull = row(who("bullmq-redis", "tuned", "redis"), [80, 40, 30]);
const more = { better: "more", base: null } as const;

test("a bench ratio is the median over repetitions of the ratio to the best peer", () => {
  const ratios = ratiosOf(sluice, [sluice, bare, boss, bossDefault, bull], more);
  // 100 / 80, 120 / 60, 90 / 45
  expect(ratios.bestPeer).toBeCloseTo(2);
  // 100 / 50, 120 / 60, 90 / 45
  expect(ratios.bestPostgresPeer).toBeCloseTo(2);
  // 100 / 80, 120 / 40, 90 / 30
  expect(ratios.bullmqRedis).toBeCloseTo(3);
  expect(ratios.pureSql).toBeCloseTo(0.5);
  expect(ratios).not.toHaveProperty("base");
});

test("the best peer has the lowest value when a workload measures less as better", () => {
  const ratios = ratiosOf(sluice, [sluice, boss, bull], { better: "less", base: null });
  // 100 / 50, 120 / 40, 90 / 10
  expect(ratios.bestPeer).toBeCloseTo(3);
});

test("Sluice and pure SQL do not count as peers, and without a peer there is no peer ratio", () => {
  expect(ratiosOf(sluice, [sluice, bare], more)).toEqual({ pureSql: 0.5 });
});

test("the base of a bench ratio is a subject of the workload or a number", () => {
  const to = (base: Workload["base"]) => ratiosOf(sluice, [sluice, bare], { ...more, base }).base;
  expect(to({ subject: "pure-sql, two connections" })).toBeCloseTo(0.5);
  expect(to({ ideal: 50, words: "the ideal" })).toBeCloseTo(2);
  expect(to({ subject: "somebody who was left out" })).toBeUndefined();
});

test("the CPU ratio compares CPU per task with the base subject repetition by repetition", () => {
  const using = (of: Row, cpu: readonly number[]): Row => ({
    who: of.who,
    samples: of.samples.map(({ value }, i) => ({ value, facts: { cpuUsPerTask: cpu[i]! } })),
  });
  const own = using(sluice, [12, 10, 30]);
  const base = using(bare, [10, 10, 20]);
  const to = (rule: Workload["base"]) => ratiosOf(own, [own, base], { ...more, base: rule });
  // 12 / 10, 10 / 10, 30 / 20
  expect(to({ subject: "pure-sql, two connections" }).baseCpu).toBeCloseTo(1.2);
  expect(to({ ideal: 50, words: "the ideal" })).not.toHaveProperty("baseCpu");
  const blind = ratiosOf(sluice, [sluice, bare], {
    ...more,
    base: { subject: "pure-sql, two connections" },
  });
  expect(blind).not.toHaveProperty("baseCpu");
});

test.each([
  [[10, 10, 10], 33.333, 33.333],
  [[50, 30, 20], 20, 50],
  [[7], 100, 100],
  [[0, 0], 0, 0],
])("shares of the task counts %j range from %d %% to %d %%", (counts, min, max) => {
  const shares = sharesOf(counts);
  expect(shares.min).toBeCloseTo(min, 2);
  expect(shares.max).toBeCloseTo(max, 2);
});

test("a peer that broke order once is excluded from bench ratios", () => {
  const broken = row(who("pg-boss", "tuned"), [500, 500, 500], { inversions: 1 });
  const kept = ({ inversions = 0 }: Facts): boolean => inversions === 0;
  expect(ratiosOf(sluice, [sluice, broken, bull], { ...more, kept }).bestPeer).toBeCloseTo(3);
  expect(ratiosOf(sluice, [sluice, broken, bull], more).bestPeer).toBeCloseTo(0.2);
});

const subjectOf = (of: ReturnType<typeof who>): Subject => ({
  who: of,
  cannot: null,
  measure: () => Promise.reject(new Error("not here")),
});

const workload: Workload = {
  name: "latency",
  about: "how long: p50",
  unit: "ms",
  better: "less",
  sizing: { by: "count", tasks: 3 },
  base: null,
  subjects: [],
  readings: [{ workload: "latency-p99", about: "how long: p99", fact: "p99Ms", unit: "ms" }],
};

test("bench results are medians, except that violations report the worst repetition", () => {
  const samples = [3, 1, 2].map((value) => ({ value, facts: { p99Ms: value * 10, peak: value } }));
  const entry = { subject: subjectOf(sluice.who), samples, tasks: 3, cannot: null };
  const [main, p99] = resultsOf(workload, [entry]);
  expect(main).toMatchObject({ workload: "latency", value: 2, min: 1, max: 3 });
  expect(main!.facts).toEqual({ p99Ms: 20, peak: 3 });
  expect(p99).toMatchObject({ workload: "latency-p99", value: 20, min: 10, max: 30 });
});

test("a subject that failed midway has no value, reports the reason and is excluded from bench ratios", () => {
  const sample = { value: 1, facts: {} };
  const ours = { subject: subjectOf(sluice.who), samples: [sample], tasks: 3, cannot: null };
  const failed = { ...ours, subject: subjectOf(boss.who), cannot: "failed: it fell over" };
  const [first, second] = resultsOf({ ...workload, readings: [] }, [ours, failed]);
  expect(first!.ratios).toEqual({});
  expect(second).toMatchObject({ value: null, cannot: "failed: it fell over", samples: [] });
});
