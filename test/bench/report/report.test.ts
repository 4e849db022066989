import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jsonOf } from "../../../bench/src/report/json.js";
import { markdownOf } from "../../../bench/src/report/markdown.js";
import { tableOf } from "../../../bench/src/report/table.js";
import { judge, verdictTable } from "../../../bench/src/report/verdict.js";
import { writeReport } from "../../../bench/src/report/write.js";
import type { Target } from "../../../bench/src/targets.js";
import { about, sample, subjects, who, workload } from "./sample.js";

interface Line {
  readonly workload: string;
  readonly subject: string;
  readonly tasksPerSecond: number | null;
  readonly [more: string]: unknown;
}

const lines = (results = sample): Line[] =>
  jsonOf(results)
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);

const lineOf = (workload: string, subject: string): Line | undefined =>
  lines().find((line) => line.workload === workload && line.subject === subject);

const target = (t: Omit<Target, "of"> & { readonly of: string }): Target => t as Target;

test("bench JSON output has one line per subject with its ratios and facts", () => {
  expect(lines()).toHaveLength(sample.length);
  expect(lineOf("drain-1", "sluice, history off")).toMatchObject({
    tasksPerSecond: 66_800,
    ratioToBestPeer: 1.52,
    ratioToPureSql: 0.81,
    ratioToBestPostgresPeer: null,
    unit: "tasks/s",
    min: 62_792,
    max: 70_808,
    library: "sluice",
    walBytesPerTask: 512,
    rssMb: 140,
  });
});

test("bench JSON output reports a median instead of tasks per second for workloads in milliseconds", () => {
  const line = lineOf("latency", "sluice, history off");
  expect(line).toMatchObject({ tasksPerSecond: null, median: 1.41, unit: "ms", p99Ms: 4.02 });
});

test("bench JSON output says why a subject cannot run a workload", () => {
  const line = lineOf("limit-10-noop", "graphile-worker, tuned");
  expect(line).toMatchObject({ tasksPerSecond: null, median: null });
  expect(line?.["cannot"]).toBe("it has no limit over all processes");
});

test("the bench terminal table lists the best subject first and incapable subjects below", () => {
  const table = tableOf(sample).split("\n");
  const latency = table.filter((line) => line.startsWith("latency  "));
  expect(latency.map((line) => /\w\S+, \w+/.exec(line)?.[0])).toEqual([
    "bullmq-redis, tuned",
    "sluice, history",
    "graphile-worker, tuned",
    "pg-boss, tuned",
  ]);
  expect(table).toContain("limit-10-noop (graphile-worker, tuned): not supported: it has no limit over all processes");
});

test("bench tables show CPU per task beside the rate, and JSON output has its ratio to the base", () => {
  const facts = { cpuUsPerTask: 17.25, nodeCpuMsPer1000: 7, databaseCpuMsPer1000: 10.25 };
  const results = workload("drain-1", "no-ops", [
    [subjects.on, 1_000, { facts, ratios: { base: 0.9, baseCpu: 1.15 } }],
    [subjects.boss, 500],
  ]);
  const [head, ours, peer] = tableOf(results)
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  const at = head!.indexOf("CPU per task, us");
  expect(head!.slice(at - 2, at + 3)).toEqual([
    "unit",
    "min - max",
    "CPU per task, us",
    "to base",
    "to base in CPU per task",
  ]);
  expect(ours!.slice(at, at + 3)).toEqual(["17.3", "0.90x", "1.15x"]);
  expect(peer).not.toContain("17.3");
  expect(markdownOf(results, about)).toContain("| to base in CPU per task | CPU per task, us |");
  expect(lines(results)[0]).toMatchObject({ ratioToBaseCpu: 1.15, cpuUsPerTask: 17.25 });
});

test("the bench report lists each configuration once, per workload if a variant has several", () => {
  const setTwice = { ...subjects.off, config: "with more permits" };
  const results = [...sample, ...workload("permits", "many at once", [[setTwice, 300]], "ms")];
  const list = markdownOf(results, about).split("## Configuration of each subject")[1]!.split("##")[0]!;
  expect(list.match(/\*\*pg-boss/g)).toHaveLength(1);
  expect(list).toContain("- **sluice 1.2.3, history off (permits)**: with more permits");
});

test("the bench report names the machine, the versions, the command and the incapable subjects", () => {
  const report = markdownOf(sample, about);
  for (const text of [
    "2 cores, Some Processor @ 2.50GHz, 8.00 GB",
    "`npm run bench -- accept`",
    "v24.1.0",
    "15.18 (Debian 15.18-0), fsync on",
    "7.0.15",
    "graphile-worker 0.18.0",
    "2030-01-02",
    "- **dbos, tuned** (order-contiguous): it has no order within a key",
  ])
    expect(report).toContain(text);
});

test("the bench report table omits empty columns and escapes its cells", () => {
  const odd = { ...who("odd", "a|b"), name: "odd | one" };
  const report = markdownOf(workload("drain-1", "no-ops", [[odd, 10]]), about);
  const rows = report.split("\n").filter((line) => line.startsWith("| ") && !line.includes("---"));
  expect(rows).toContain("| subject | tasks/s | min - max |");
  expect(rows).toContain("| odd \\| one | 10.0 | 9.40 - 10.6 |");
});

test("the bench report of a quick run says that its numbers prove nothing", () => {
  expect(markdownOf(sample, { ...about, quick: true })).toContain("prove nothing");
  expect(markdownOf(sample, about)).not.toContain("prove nothing");
});

test("a bench target is judged by a ratio, by the median or by a fact", () => {
  const verdicts = judge(sample, [
    target({ workload: "drain-1", subject: "sluice, history off", of: "bestPeer", atLeast: 1.4 }),
    target({ workload: "drain-1", subject: "sluice, history off", of: "pureSql", atLeast: 0.82 }),
    target({ workload: "latency", subject: "sluice, history off", of: "value", atMost: 1.4 }),
    target({ workload: "latency", subject: "sluice, history off", of: "p99Ms", atMost: 4.1 }),
  ]);
  expect(verdicts.map((v) => v.passed)).toEqual([true, false, false, true]);
  expect(verdictTable(verdicts)).toContain("2 passed, 2 failed");
});

test("a bench target without a result is missed, not skipped", () => {
  const verdicts = judge(sample, [
    target({ workload: "drain-1", subject: "sluice, misspelt", of: "value", atLeast: 0 }),
    target({
      workload: "limit-10-noop",
      subject: "graphile-worker, tuned",
      of: "value",
      atMost: 9,
    }),
    target({ workload: "drain-2", subject: "sluice, history off", of: "bestPeer", atLeast: 1 }),
  ]);
  expect(verdicts.map((v) => v.passed)).toEqual([false, false, false]);
});

test("a bench target is not judged if its workload was not measured", () => {
  expect(judge(sample, [target({ workload: "other", subject: "s", of: "value" })])).toEqual([]);
});

test("the bench writes results, report and chart into the output folder", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-report-"));
  try {
    writeReport(folder, sample, about, { plans: "All is well." });
    expect(readdirSync(folder).toSorted()).toEqual(["chart.svg", "report.md", "results.jsonl"]);
    const report = readFileSync(join(folder, "report.md"), "utf8");
    expect(report).toContain("](chart.svg)");
    expect(report).toContain("## Query plans\n\nAll is well.");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the bench writes no chart and links none if no peer was measured", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-report-"));
  try {
    writeReport(folder, workload("drain-1", "no-ops", [[subjects.off, 10]]), about);
    expect(readdirSync(folder)).not.toContain("chart.svg");
    expect(readFileSync(join(folder, "report.md"), "utf8")).not.toContain("chart.svg");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
