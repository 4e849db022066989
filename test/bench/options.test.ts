import { expect, test } from "vitest";
import { isNewEnough } from "../../bench/node.mjs";
import { castOf } from "../../bench/src/cast.js";
import { choose, measurementsOf } from "../../bench/src/choose.js";
import type { Library } from "../../bench/src/adapter.js";
import { pureSql } from "../../bench/src/library/pure-sql/index.js";
import { sluice } from "../../bench/src/library/sluice/index.js";
import { parseOptions, UsageError } from "../../bench/src/options.js";
import { targets } from "../../bench/src/targets.js";
import { workloadsOf } from "../../bench/src/workload/all.js";

const peer: Library = {
  name: "peer",
  version: "1.0.0",
  store: "postgres",
  variants: ["default", "tuned"].map((name) => ({ ...sluice.variants[0]!, name })),
};
const workloads = workloadsOf(castOf([sluice, pureSql, peer]), false);
const all = { command: "run", only: [], subjects: [] } as const;

test("the bench measures everything three times for three seconds by default", () => {
  expect(parseOptions([])).toMatchObject({
    command: "run",
    quick: false,
    repetitions: 3,
    seconds: 3,
    only: [],
    out: null,
  });
});

test("bench --quick runs one short repetition unless --seconds or --reps override it", () => {
  expect(parseOptions(["accept", "--quick"])).toMatchObject({ repetitions: 1, seconds: 0.5 });
  expect(parseOptions(["--quick", "--seconds", "2", "--reps", "4"])).toMatchObject({
    repetitions: 4,
    seconds: 2,
  });
});

test("bench options accept lists and worker settings", () => {
  const options = parseOptions(["--only", "order,drain-1", "--only", "types", "--worker", "a=5"]);
  expect(options).toMatchObject({ only: ["order", "drain-1", "types"], numbers: { a: 5 } });
  expect(parseOptions(["--help"])).toBeNull();
  expect(parseOptions(["plans", "--out", "here"])).toMatchObject({ command: "plans", out: "here" });
});

test.each([
  [["drain"]],
  [["run", "accept"]],
  [["--reps", "0"]],
  [["--seconds", "soon"]],
  [["--worker", "claimBatchSize"]],
  [["--fast"]],
  [["plans"]],
])("the bench command line refuses %j", (argv) => {
  expect(() => parseOptions(argv)).toThrow(UsageError);
});

test("names of bench workloads and subjects are unique", () => {
  const names = workloads.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const { name, subjects } of workloads) {
    const who = subjects.map((subject) => subject.who.name);
    expect(new Set(who).size, name).toBe(who.length);
  }
});

test("every bench target and every base names a measured subject", () => {
  const known = workloads.flatMap(({ name, subjects, readings = [] }) =>
    [name, ...readings.map(({ workload }) => workload)].flatMap((workload) =>
      subjects.map(({ who }) => `${workload}: ${who.name}`),
    ),
  );
  expect(targets.map((t) => `${t.workload}: ${t.subject}`).filter((t) => !known.includes(t))).toEqual([]);
  const bases = workloads.flatMap(({ name, base }) =>
    base !== null && "subject" in base ? [`${name}: ${base.subject}`] : [],
  );
  expect(bases.length).toBeGreaterThan(5);
  expect(bases.filter((base) => !known.includes(base))).toEqual([]);
});

test("bench accept measures only the workloads that have a target", () => {
  const chosen = choose({ ...all, command: "accept" }, workloads, targets).map((w) => w.name);
  expect(chosen).toContain("latency");
  expect(chosen).not.toContain("enqueue-tx");
  const named = targets.map(({ workload }) => workload);
  expect(chosen.filter((name) => !named.includes(name))).toEqual([]);
});

test("bench --only selects a workload by its name or by the name of one of its readings", () => {
  const names = (...only: string[]) => choose({ ...all, only }, workloads, []).map((w) => w.name);
  expect(names("latency-p99", "order")).toEqual(["latency", "order"]);
  expect(() => names("ordre")).toThrow(/no workload ordre: there are enqueue/);
});

test("bench --subjects keeps the base subjects and skips workloads without a selected subject", () => {
  const chosen = choose({ ...all, subjects: ["peer, tuned"] }, workloads, []);
  const order = chosen.find(({ name }) => name === "order")!;
  expect(order.subjects.map(({ who }) => who.name)).toEqual(["unlimited", "peer, tuned"]);
  expect(chosen.map(({ name }) => name)).not.toContain("blocked");
  expect(() => choose({ ...all, subjects: ["nobody"] }, workloads, [])).toThrow(UsageError);
});

test("bench progress counts one probe per subject, or one for all subjects of the same size", () => {
  const [order] = choose({ ...all, only: ["order-1"] }, workloads, []);
  const [blocked] = choose({ ...all, only: ["blocked"] }, workloads, []);
  const [permits] = choose({ ...all, only: ["permits"] }, workloads, []);
  const able = order!.subjects.length;
  expect(measurementsOf([order!], 3)).toBe(able * 4);
  expect(measurementsOf([blocked!], 3)).toBe(1 + 2 * 3);
  expect(measurementsOf([permits!], 3)).toBe(permits!.subjects.length * 3);
});

test.each([
  ["22.18.0", true],
  ["22.17.9", false],
  ["24.0.0", true],
  ["20.19.0", false],
])("Node.js %s is new enough to run the peer libraries: %s", (version, expected) => {
  expect(isNewEnough(version)).toBe(expected);
});
