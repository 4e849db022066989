import { expect, test } from "vitest";
import { sampledDurations } from "../../src/plan/durations.js";
import { parseDuration, parseRate, parseSamples } from "../../src/plan/quantity.js";
import { randomOf } from "../../src/plan/simulate/random.js";
import { Spread } from "../../src/plan/simulate/spread.js";

test("a samples file mixes plain numbers and JSON lines with durationMs", () => {
  const text = '12\n\n 0.5 \r\n1e3\n{"type":"mail","durationMs":7.25}\n';
  expect(parseSamples("s.txt", text)).toEqual([12, 0.5, 1000, 7.25]);
});

test.each([
  ["twelve", '"twelve"'],
  ["-1", '"-1"'],
  ["0x10", '"0x10"'],
  ["NaN", '"NaN"'],
  ["1e300", '"1e300"'],
  ["1,2", '"1,2"'],
  ['{"durationMs":"7"}', "durationMs"],
  ['{"duration":7}', "durationMs"],
  ['{"durationMs":', "durationMs"],
  ["[7]", '"[7]"'],
])("a samples line with %s fails with an error that names file and line", (line, shown) => {
  const parse = (): number[] => parseSamples("s.txt", `1\n2\n${line}\n4\n`);
  expect(parse).toThrow(/^s\.txt, line 3, must be a duration in ms/);
  expect(parse).toThrow(shown);
  expect(parse).toThrow(expect.objectContaining({ code: "invalid_option", details: { file: "s.txt", line: 3 } }));
});

test("a samples file without durations or with too many is refused", () => {
  expect(() => parseSamples("s.txt", "\n \n")).toThrow("s.txt has no durations");
  expect(() => parseSamples("s.txt", "1\n".repeat(1_000_001))).toThrow("line 1000001,");
});

test("the plan draws sampled durations by their frequency", () => {
  const durations = sampledDurations([1, 1, 1, 5]);
  expect(durations).toMatchObject({ meanMs: 2, p99Ms: 5, samples: 4 });
  const random = randomOf(1);
  const drawn = Array.from({ length: 40_000 }, () => durations.draw(random));
  expect(drawn.filter((ms) => ms === 5).length / 40_000).toBeCloseTo(0.25, 1);
  expect(new Set(drawn)).toEqual(new Set([1, 5]));
});

test.each([
  ["200", 200],
  ["200/s", 200],
  ["12000/min", 200],
  ["5/h", 5 / 3600],
  ["0.5", 0.5],
])("a plan reads the rate %s as %d per second", (text, perSecond) => {
  expect(parseRate("--rate", text)).toBeCloseTo(perSecond);
});

test.each(["", "0", "-1", "1e9", "200 /s", "200/d", "many", "2000000"])("a plan refuses the rate %j", (text) =>
  expect(() => parseRate("--rate", text)).toThrow(/^--rate must be a number/),
);

test.each([
  ["80ms", 80],
  ["80 ms", 80],
  ["1.5s", 1500],
  ["2min", 120_000],
  ["1h", 3_600_000],
  ["250us", 0.25],
])("a plan reads the duration %s as %d ms", (text, ms) => {
  expect(parseDuration("--duration", text)).toBeCloseTo(ms);
});

test.each(["", "80", "-1ms", "1e3ms", "200h", "1 day"])("a plan refuses the duration %j", (text) =>
  expect(() => parseDuration("--duration", text)).toThrow(/^--duration (must be|in ms must be)/),
);

test("simulated quantiles are accurate to one percent and 0 without samples", () => {
  const spread = new Spread();
  expect([spread.mean, spread.quantile(0.5)]).toEqual([0, 0]);
  for (let n = 1; n <= 10_000; n++) spread.add(n / 10);
  expect(spread.quantile(0.5) / 500).toBeCloseTo(1, 1.9);
  expect(spread.quantile(0.99) / 990).toBeCloseTo(1, 1.9);
  expect(spread.quantile(1)).toBe(1000);
  expect(spread.mean).toBeCloseTo(500.05);
});

test("random numbers of the simulation are uniform and depend only on the seed", () => {
  const random = randomOf(3);
  const counts = Array.from({ length: 20 }, () => 0);
  for (let n = 0; n < 200_000; n++) counts[Math.floor(random() * 20)]!++;
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
  const [a, b, c] = [randomOf(1), randomOf(1), randomOf(2)].map((draw) => [draw(), draw()]);
  expect(a).toEqual(b);
  expect(a).not.toEqual(c);
});
