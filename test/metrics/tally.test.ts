import { expect, test } from "vitest";
import { catalogue, LABEL_VALUES_MAX, type Definition } from "../../src/metrics/catalogue.js";
import { Groups } from "../../src/metrics/groups.js";
import { Histogram } from "../../src/metrics/histogram.js";
import { IdleRatio } from "../../src/metrics/idle.js";
import { Tally } from "../../src/metrics/tally.js";
import { PassedReader, type Passed } from "../../src/postgres/passed.js";

/** The report of a task that passed one limit. */
function passed(limit: number, { perKey = false, late = false, waitMs = 0 } = {}): Passed {
  return { waitMs, limits: [{ limit, perKey, fullMs: late ? -Infinity : Infinity }] };
}

/** The acquired and rejected counts by group. */
function counts(groups: Groups): Record<string, number[]> {
  const all: Record<string, number[]> = {};
  for (const { labels, value } of groups.acquisitions()) (all[labels["group"]!] ??= []).push(value);
  return all;
}

const named = (n: number): [number, string][] => Array.from({ length: n }, (_, i) => [i + 1, `g${i}`]);

const definitions = Object.entries(catalogue) as [string, Definition][];

test("every metric has a help text, counters end in _total and histograms have ascending buckets", () => {
  for (const [name, { kind, help, buckets, labels = [] }] of definitions) {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)+$/);
    expect(help.endsWith("."), name).toBe(true);
    expect(name.endsWith("_total"), name).toBe(kind === "counter");
    expect(buckets !== undefined, name).toBe(kind === "histogram");
    expect(buckets?.toSorted((a, b) => a - b)).toEqual(buckets);
    expect(labels).not.toContain("le");
  }
});

test("histogram buckets are cumulative and include their upper bound", () => {
  const histogram = new Histogram([0.001, 0.01], 1_000);
  for (const ms of [0, 1, 1.5, 10, 11]) histogram.observe(ms);
  const samples = histogram.samples("x", { type: "a" });
  expect(samples.map(({ metricName, labels, value }) => [metricName, labels["le"], value])).toEqual([
    ["x_bucket", "0.001", 2],
    ["x_bucket", "0.01", 4],
    ["x_bucket", "+Inf", 5],
    ["x_sum", undefined, 0.0235],
    ["x_count", undefined, 5],
  ]);
});

test("metrics sum up types and groups beyond the maximum as _other", () => {
  const tally = new Tally();
  const many = LABEL_VALUES_MAX + 20;
  for (let i = 0; i < many; i++) tally.serve(i, `t${i}`, [`g${i}`]);
  for (let i = 0; i < many; i++) {
    tally.started(0);
    tally.ended(i, "succeeded", 0, 1);
    tally.passed(passed(i + 1));
  }
  tally.groups.learn(tally.groups.unknown, new Map(named(many)));
  const types = tally.ends().filter(({ labels }) => labels["outcome"] === "succeeded");
  expect(types).toHaveLength(LABEL_VALUES_MAX + 1);
  expect(types.at(-1)).toEqual({ labels: { type: "_other", outcome: "succeeded" }, value: 20 });
  const groups = tally.groups.acquisitions().filter(({ labels }) => labels["result"] === "acquired");
  expect(groups.at(-1)).toEqual({ labels: { group: "_other", result: "acquired" }, value: 20 });
  expect(groups.reduce((sum, { value }) => sum + value, 0)).toBe(many);
});

test("counts from before the name of a limit is known are reported under that name once", () => {
  let asked = 0;
  const groups = new Groups(() => asked++);
  groups.expect(["mail"]);
  groups.passed(passed(7, { late: true, waitMs: 20 }));
  groups.passed(passed(7));
  expect(asked).toBe(1);
  expect(counts(groups)).toEqual({ mail: [0, 0] });
  groups.learn([7], new Map([[7, "mail"]]));
  expect(counts(groups)).toEqual({ mail: [2, 1] });
  // The part per key occurs only now, so the name is queried again.
  groups.passed(passed(7, { perKey: true }));
  expect(groups.unknown).toEqual([7]);
  groups.learn([7], new Map([[7, "mail"]]));
  groups.passed(passed(7));
  expect(counts(groups)).toEqual({ mail: [3, 1], "mail/*": [1, 0] });
  const [count] = groups.waits("w").filter(({ metricName }) => metricName === "w_count");
  expect(count).toMatchObject({ labels: { group: "mail" }, value: 3 });
  expect(asked).toBe(2);
});

test("metrics omit a removed limit and do not query its name again", () => {
  let asked = 0;
  const groups = new Groups(() => asked++);
  groups.passed(passed(7));
  groups.learn([7], new Map());
  groups.passed(passed(7));
  expect([asked, groups.unknown, counts(groups)]).toEqual([1, [], {}]);
});

test("the reader of passed limits decodes waits, totals and limits per key", () => {
  const reader = new PassedReader();
  expect(reader.read("12")).toEqual({ waitMs: 12, limits: [] });
  // A retry; one of two totals was full until now, the other never.
  expect(reader.read("-1,3,-1,5,9007199254740991")).toEqual({
    waitMs: -1,
    limits: [
      { limit: 3, perKey: false, fullMs: -Infinity },
      { limit: 5, perKey: false, fullMs: Infinity },
    ],
  });
  // A total that was full before the task was due, an order key, and two limits per key: late at the second.
  const passedBoth = {
    limits: [
      { limit: 3, perKey: false, fullMs: 10 },
      { limit: 8, perKey: true, fullMs: Infinity },
      { limit: 9, perKey: true, fullMs: -Infinity },
    ],
  };
  expect(reader.read("10,3,10,0,4,-1,8,9")).toEqual({ waitMs: 10, ...passedBoth });
  expect(reader.read("7,3,10,0,4,-1,8,9")).toEqual({ waitMs: 7, ...passedBoth });
});

test("a task counts as having waited only if it was due while the limit was full, to the millisecond", () => {
  const groups = new Groups(() => {});
  const since = (waitMs: number, fullMs: number): Passed => ({
    waitMs,
    limits: [{ limit: 7, perKey: false, fullMs }],
  });
  groups.learn([7], new Map([[7, "mail"]]));
  for (const waitMs of [9, 10, 11]) groups.passed(since(waitMs, 10));
  // The due time of a retry is unknown: it counts only if the limit was full until now.
  groups.passed(since(-1, 10));
  groups.passed(since(-1, -Infinity));
  groups.learn([7], new Map([[7, "mail"]]));
  expect(counts(groups)).toEqual({ mail: [5, 2] });
});

test("busy time adds up the time of all tasks in flight", () => {
  const tally = new Tally();
  tally.started(100);
  tally.started(200);
  expect(tally.busyMs(300)).toBe(300);
  tally.ended(1, "failed", 100, 400);
  tally.ended(1, "lost", 200, 600);
  expect(tally.busyMs(1_000)).toBe(700);
});

test("the idle ratio covers the last minute and does not depend on other readers", () => {
  const idle = new IdleRatio(2, 0);
  expect(idle.look(0, 0)).toBe(1);
  // Both permits in use for ten seconds, then one of them for twenty.
  expect(idle.look(10_000, 20_000)).toBe(0);
  expect(idle.look(30_000, 40_000)).toBeCloseTo(1 / 3);
  expect(idle.look(30_001, 40_000)).toBeCloseTo(1 / 3, 3);
  // A minute later, nothing has run within the window.
  expect(idle.look(90_000, 40_000)).toBe(1);
  // A reader that reads every five minutes gets the ratio of five minutes.
  expect(idle.look(390_000, 340_000)).toBeCloseTo(0.5);
});
