import { expect, test } from "vitest";
import { catalogue, LABEL_VALUES_MAX, type Definition } from "../../src/metrics/catalogue.js";
import { Histogram } from "../../src/metrics/histogram.js";
import { IdleRatio } from "../../src/metrics/idle.js";
import { Tally } from "../../src/metrics/tally.js";

const definitions = Object.entries(catalogue) as [string, Definition][];

test("every metric has a help text, a histogram ascending buckets, a counter a name that says so", () => {
  for (const [name, { kind, help, buckets, labels = [] }] of definitions) {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)+$/);
    expect(help.endsWith("."), name).toBe(true);
    expect(name.endsWith("_total"), name).toBe(kind === "counter");
    expect(buckets !== undefined, name).toBe(kind === "histogram");
    expect(buckets?.toSorted((a, b) => a - b)).toEqual(buckets);
    expect(labels).not.toContain("le");
  }
});

test("a value on a bound belongs to its bucket, and each bucket counts those below it", () => {
  const histogram = new Histogram([0.001, 0.01], 1_000);
  for (const ms of [0, 1, 1.5, 10, 11]) histogram.observe(ms);
  const samples = histogram.samples("x", { type: "a" });
  expect(samples.map(({ metricName, labels, value }) => [metricName, labels["le"], value])).toEqual(
    [
      ["x_bucket", "0.001", 2],
      ["x_bucket", "0.01", 4],
      ["x_bucket", "+Inf", 5],
      ["x_sum", undefined, 0.0235],
      ["x_count", undefined, 5],
    ],
  );
});

test("types and groups beyond the maximum are counted together", () => {
  const tally = new Tally();
  const many = LABEL_VALUES_MAX + 20;
  for (let i = 0; i < many; i++) tally.serve(i, { type: `t${i}`, groups: [`g${i}`] });
  for (let i = 0; i < many; i++) {
    tally.started(i, 0);
    tally.ended(i, "succeeded", 0, 1);
  }
  const types = tally.ends().filter(({ labels }) => labels["outcome"] === "succeeded");
  expect(types).toHaveLength(LABEL_VALUES_MAX + 1);
  expect(types.at(-1)).toEqual({ labels: { type: "_other", outcome: "succeeded" }, value: 20 });
  const groups = tally.acquisitions().filter(({ labels }) => labels["result"] === "acquired");
  expect(groups.at(-1)).toEqual({ labels: { group: "_other", result: "acquired" }, value: 20 });
  expect(groups.reduce((sum, { value }) => sum + value, 0)).toBe(many);
});

test("which limits there are is known without looking: every claim that comes back short asks", () => {
  const tally = new Tally();
  expect(tally.groups.size).toBe(0);
  tally.serve(1, { type: "a", groups: ["mail", "tenant/*"] });
  tally.serve(2, { type: "b", groups: ["mail"] });
  expect([...tally.groups]).toEqual(["mail", "tenant/*"]);
  expect(tally.groups).toBe(tally.groups);
});

test("the time of tasks in flight is added up, whoever begins and ends when", () => {
  const tally = new Tally();
  tally.started(1, 100);
  tally.started(1, 200);
  expect(tally.busyMs(300)).toBe(300);
  tally.ended(1, "failed", 100, 400);
  tally.ended(1, "lost", 200, 600);
  expect(tally.busyMs(1_000)).toBe(700);
});

test("the idle share is that of the last minute, and several who look do not disturb each other", () => {
  const idle = new IdleRatio(2, 0);
  expect(idle.look(0, 0)).toBe(1);
  // Both permits in use for ten seconds, then one of them for twenty.
  expect(idle.look(10_000, 20_000)).toBe(0);
  expect(idle.look(30_000, 40_000)).toBeCloseTo(1 / 3);
  expect(idle.look(30_001, 40_000)).toBeCloseTo(1 / 3, 3);
  // A minute later nothing has run for as long as one looks back.
  expect(idle.look(90_000, 40_000)).toBe(1);
  // Whoever looks every five minutes sees five minutes.
  expect(idle.look(390_000, 340_000)).toBeCloseTo(0.5);
});
