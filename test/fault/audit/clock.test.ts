import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import { latestReading } from "../../../fault/audit/database-clock.js";
import type { Line } from "../../../fault/audit/line.js";
import { dead, disturbance, found, line, serves, Tale, terms } from "./story.js";

const MINUTE = 60_000;
const jump = (from: number, to: number, byMs: number): Line[] => [
  line(from, "harness", { kind: "clockMoving", byMs }),
  line(to, "harness", { kind: "clockMoved", byMs }),
];
const forward = (at: number): Line[] => [
  ...disturbance(at - 1, at + 1_000, "*", "clock-forward"),
  ...jump(at, at + 10, MINUTE),
];

test("the latest reading of the clock includes every jump in between, and the later time of a jump in progress", () => {
  const jumps = [
    { from: 100, to: 110, byMs: 1_000 },
    { from: 200, to: 210, byMs: -5_000 },
  ];
  expect(latestReading([], 0, 50)).toBe(50);
  expect(latestReading(jumps, 0, 99)).toBe(99);
  expect(latestReading(jumps, 0, 105)).toBe(1_105);
  expect(latestReading(jumps, 0, 150)).toBe(1_150);
  // Until the clock was set back it had shown 1,210.
  expect(latestReading(jumps, 0, 300)).toBe(1_210);
  expect(latestReading(jumps, 250, 300)).toBe(-3_700);
});

test("the audit finds early starts by the clock of the database", () => {
  const [later, soon] = [new Tale("p/1", { runAt: 30_000 }), new Tale("p/2", { runAt: 1_000 })];
  const run = later.whole(20_000, 20_010);
  expect(found(run)).toEqual({ early: 1 });
  expect(found(run, jump(10_000, 10_010, MINUTE))).toEqual({});
  expect(found(run, jump(10_000, 10_010, MINUTE), jump(19_900, 19_910, -MINUTE))).toEqual({
    early: 1,
  });
  expect(found(soon.whole(2_000, 2_010), jump(1_500, 1_510, -MINUTE))).toEqual({ early: 1 });
});

test("the audit allows a due task to start after the clock was set back", () => {
  const t = new Tale("p/1", { runAt: 30_000 });
  const run = [...t.enqueued(5_000), ...t.ran(20_000, 20_010), t.accepted(20_011)];
  const both = [...jump(10_000, 10_010, MINUTE), ...jump(19_500, 19_510, -MINUTE)];
  expect(found(run, both)).toEqual({});
});

test("the audit ends all leases when the clock is set forward", () => {
  const [a, b, c] = ["p/1", "p/2", "p/3"].map((tag) => new Tale(tag, { limits: ["pool"] }));
  const slow = [...a!.whole(4_000, 5_300), ...b!.whole(4_000, 5_300)];
  const third = (at: number) => c!.whole(at, at + 5, { process: "w2" });
  expect(found(slow, third(4_999), forward(5_000))).toEqual({ overLimit: 1 });
  expect(found(slow, third(5_100), forward(5_000))).toEqual({});
  expect(found(slow, third(5_100), jump(5_000, 5_010, -MINUTE))).toEqual({ overLimit: 1 });
});

test("the audit allows a late start of a task claimed before the clock was set forward, and counts it as doubtful", () => {
  const t = new Tale("p/1");
  const twice = [
    ...t.enqueued(1_000),
    ...t.ran(5_400, 5_700, "lease_lost"),
    ...t.ran(5_600, 5_650, "completed", { process: "w2" }),
    t.accepted(5_660),
  ];
  const report = audit([...twice, ...forward(5_000)], terms);
  expect(report.violations).toBe(0);
  expect(report.leasesLost).toBe(0);
  expect(report.doubtful.starts).toBeGreaterThan(0);
});

const t = new Tale("p/1");
const recovered = (at: number): Line[] => [
  ...t.enqueued(0),
  t.begun(10),
  dead(20),
  ...t.ran(at, at + 10, "completed", { process: "w2" }),
  t.accepted(at + 11),
];
/** Others start all the while. */
const busy = Array.from({ length: 80 }, (_, n) =>
  new Tale(`b/${n}`).whole(n * 100 + 50, n * 100 + 60, { process: "w3" }),
).flat();

test("the audit allows a recovery a lease and an allowance after the clock was set back", () => {
  const back = jump(500, 510, -MINUTE);
  expect(found(busy, recovered(3_500))).toEqual({ slowRecovery: 1 });
  expect(found(busy, recovered(3_500), back)).toEqual({});
  expect(found(busy, recovered(3_511), back)).toEqual({ slowRecovery: 1 });
});

test("the audit does not excuse a late recovery by an event after its deadline", () => {
  expect(found(busy, recovered(5_000), disturbance(4_000, 4_100, "*", "restart"))).toEqual({
    slowRecovery: 1,
  });
  expect(found(busy, recovered(5_000), forward(4_990))).toEqual({ slowRecovery: 1 });
});

test("the audit allows no stall longer than a lease after the clock was set back", () => {
  const run = (at: number) => new Tale("q/1").whole(at, at + 10);
  const back = jump(1_000, 1_010, -MINUTE);
  expect(found(run(2_000), back)).toEqual({});
  expect(found(run(2_011), back)).toEqual({ slowRecovery: 1 });
  expect(found(run(2_011), back, disturbance(1_500, 1_900, "*", "restart"))).toEqual({});
  expect(found(run(2_011), jump(1_000, 1_010, MINUTE))).toEqual({});
  const replaced = [serves(0, "w9", "mail"), dead(990, "w9"), serves(1_900, "w1", "mail")];
  expect(found(run(2_011), back, replaced)).toEqual({});
});
