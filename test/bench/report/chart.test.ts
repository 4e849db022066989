import { expect, test } from "vitest";
import { panelsOf } from "../../../bench/src/report/chart.js";
import { svgOf } from "../../../bench/src/report/svg.js";
import { about, sample, subjects, who, workload } from "./sample.js";

const panel = (title: string) => panelsOf(sample).find((p) => p.title === title)!;

test("the bench chart shows the main workloads that have a peer", () => {
  expect(panelsOf(sample).map((p) => p.title)).toEqual([
    "drain-1",
    "drain-2",
    "enqueue",
    "order-contiguous",
    "limit-10-noop",
    "latency",
  ]);
});

test("the bench chart shows the best variant of each peer and every variant of Sluice, best first", () => {
  expect(panel("drain-1").bars.map((bar) => bar.label)).toEqual([
    "pure-sql, bare loop",
    "sluice, history off",
    "sluice, history on",
    "graphile-worker, tuned",
    "pg-boss, tuned",
    "bullmq-redis, tuned",
    "bullmq-postgres, tuned",
    "dbos, tuned",
  ]);
  expect(panel("latency").bars[0]!.label).toBe("bullmq-redis, tuned");
});

test("the bench chart lists an incapable library once below the bars, however many variants it has", () => {
  const last = panel("limit-10-noop").bars.filter((bar) => bar.extent === null);
  expect(last.map((bar) => [bar.label, bar.text])).toEqual([["graphile-worker", "cannot"]]);
});

test("the bench chart marks a variant that broke order and shows the best ordered variant below it", () => {
  expect(panel("order-contiguous").bars.map(({ label, text }) => `${label}: ${text}`)).toEqual([
    "sluice, history off: 31,200",
    "graphile-worker, tuned: 6,510  (41,233 out of order)",
    "graphile-worker, strict: 1,650",
    "pg-boss, tuned: 19.0",
    "dbos: cannot",
  ]);
});

test("the bench chart has no bar for the unlimited base of Sluice", () => {
  const results = workload("limit-10-noop", "no-ops", [
    [{ ...subjects.on, name: "unlimited" }, 60_000],
    [subjects.on, 20_000],
    [subjects.boss, 4_000],
  ]).map((r) => ({ ...r, base: "unlimited" }));
  expect(panelsOf(results)[0]!.bars.map((bar) => bar.label)).toEqual(["sluice, history on", "pg-boss, tuned"]);
});

test("the bench chart stays within its edges, however long names and numbers are", () => {
  const long = who("a-library-with-quite-a-name", "tuned for everything at once");
  // One on the left, one on the right.
  const results = ["drain-1", "drain-2"].flatMap((name) =>
    workload(name, "word ".repeat(60).trim(), [
      [subjects.off, 123_456_789, { facts: { inversions: 999_999 } }],
      [long, 0.001, { facts: { inversions: 987_654_321 } }],
      [subjects.boss, 0],
    ]),
  );
  const svg = svgOf(results, { ...about, cpu: "cpu ".repeat(80) })!;
  const width = Number(/viewBox="0 0 (\d+)/.exec(svg)![1]);
  const ends = [
    ...[...svg.matchAll(/<text x="([\d.]+)"[^>]*>([^<]*)</g)].map(([tag, x, text]) =>
      // The width of the widest of the fonts at 12 pixels.
      tag.includes('"end"') ? Number(x) : Number(x) + text!.length * (tag.includes("600") ? 7.2 : 6.4),
    ),
    ...[...svg.matchAll(/<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"/g)].map(([, x, w]) => Number(x) + Number(w)),
  ];
  expect(ends.length).toBeGreaterThan(12);
  expect(Math.max(...ends)).toBeLessThanOrEqual(width);
  expect(svg).not.toMatch(/(?:x|width)="-|NaN|Infinity/);
});

test("the bench chart escapes markup in names", () => {
  const odd = { ...who("odd", "<b> & co"), name: "<b> & co" };
  const svg = svgOf(workload("drain-1", "a < b", [[odd, 1]]), about)!;
  expect(svg).toContain("&lt;b&gt; &amp; co");
  expect(svg).not.toContain("<b>");
});
