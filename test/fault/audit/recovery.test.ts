import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import { describe as described } from "../../../fault/audit/describe.js";
import type { Line } from "../../../fault/audit/line.js";
import { change, dead, disturbance, found, pause, serves, Tale, terms } from "./story.js";

const t = new Tale("p/1", { limits: ["pool"] });
const crashed = [...t.enqueued(0), t.begun(10), dead(20)];
const again = (at: number): Line[] => [...t.ran(at, at + 10, "completed", { process: "w2" }), t.accepted(at + 11)];

test("the audit expects a task of a dead process to start again within a lease and an allowance", () => {
  expect(found(crashed, again(3020))).toEqual({});
  expect(found(crashed, again(3021))).toEqual({ slowRecovery: 1 });
  const { recovery } = audit([...crashed, ...again(1520)], terms);
  expect(recovery).toEqual({
    died: 1,
    settled: 0,
    excused: {},
    count: 1,
    medianMs: 1500,
    p95Ms: 1500,
    maxMs: 1500,
  });
});

test("the audit finds a task that never starts again if the log continues long enough", () => {
  expect(found(crashed)).toEqual({ lost: 1 });
  expect(found(crashed, new Tale("p/2").whole(4000, 4010))).toEqual({ lost: 1, slowRecovery: 1 });
});

test("the audit counts a task that is recorded without running again as recovered", () => {
  const { recovery, violations } = audit([...crashed, t.cancelling(30), t.accepted(5000, "cancelled")], terms);
  expect([violations, recovery.died, recovery.settled]).toEqual([0, 1, 1]);
});

test("the audit counts a task as recovered that is recorded without running again and retried by hand later", () => {
  const cancelled = [t.cancelling(30), t.accepted(40, "cancelled")];
  const retried = [...crashed, ...cancelled, t.retrying(5000), ...again(5010)];
  const { recovery, violations } = audit(retried, terms);
  expect([violations, recovery.died, recovery.settled]).toEqual([0, 1, 1]);
  expect(found(crashed, again(5010))).toEqual({ slowRecovery: 1 });
});

test("the audit excuses a late recovery by an absent worker only if no other serves the type", () => {
  const away = [serves(1, "w4", "mail"), ...disturbance(15, 3500, "w4")];
  const lines = (type: string) => [...crashed, ...away, serves(2, "w3", type), ...again(3600)];
  const { violations, recovery } = audit(lines("bill"), terms);
  expect(violations).toBe(0);
  expect(recovery.excused).toEqual({ "no worker that serves it was well": 1 });
  expect(found(lines("mail"))).toEqual({ slowRecovery: 1 });
});

test.each<[string, Line[]]>([
  ["everybody was disturbed", disturbance(2900, 3000, "*", "restart")],
  ["its type was paused", pause(100, 3500, "mail")],
  ["a limit of it was lowered or changed", change(10, 15, "pool", 1)],
  ["a limit of it was lowered or changed", change(100, 110, "pool", 9)],
  ["somebody asked to cancel it", [t.cancelling(100)]],
  ["another process may have died with it", [dead(1100, "w3")]],
])("the audit excuses a late recovery if %s", (why, lines) => {
  const report = audit([...crashed, ...lines, ...again(3600)], terms);
  expect(report.violations).toBe(0);
  expect(report.recovery).toMatchObject({ excused: { [why]: 1 }, count: 0 });
});

test.each<[string, Line[]]>([
  ["a disturbance of another process", disturbance(2900, 3900, "w3")],
  ["the pause of another type", pause(100, 3500, "other")],
  ["the change of another limit", change(100, 110, "vendor", 1)],
  ["a limit that is as it was at first", [...change(1, 2, "pool", 1), ...change(3, 4, "pool", 2)]],
  ["a death long before", [dead(5, "w3")]],
])("the audit does not excuse a late recovery by %s", (_, lines) => {
  expect(found(crashed, lines, again(3600))).toEqual({ slowRecovery: 1 });
});

test("the audit times the first start after a disturbance of all workers", () => {
  const lines = [
    ...disturbance(100, 200, "*", "restart"),
    ...new Tale("p/1").whole(900, 910),
    ...disturbance(1000, 1100, "*", "restart"),
    ...new Tale("p/2").whole(1400, 1410),
    ...disturbance(2000, 2100, "w1", "freeze"),
    ...disturbance(3000, 3100, "*", "nothing to do after it"),
  ];
  expect(audit(lines, terms).resume).toEqual({
    count: 2,
    medianMs: 700,
    p95Ms: 700,
    maxMs: 700,
  });
});

test("the audit does not time a disturbance that is followed by another before any start", () => {
  const twice = [...disturbance(100, 200, "*", "restart"), ...disturbance(300, 400, "*", "restart")];
  const { resume } = audit([...twice, ...new Tale("p/1").whole(900, 910)], terms);
  expect(resume).toMatchObject({ count: 1, maxMs: 500 });
});

test("the audit does not let a short disturbance hide the longer one around it", () => {
  const long = [...disturbance(10, 3500, "*", "slow"), ...disturbance(15, 18, "*", "cut")];
  const { recovery } = audit([...crashed, ...long, ...again(3600)], terms);
  expect(recovery.excused).toEqual({ "everybody was disturbed": 1 });
});

test("a report prints a table and the first findings in words", () => {
  const bad = [1, 2, 3, 4, 5, 6, 7].flatMap((n) => new Tale(`l/${n}`).enqueued(n));
  const text = described(audit([...crashed, ...again(1520), ...bad], terms));
  expect(text).toContain("7 VIOLATIONS");
  expect(text).toMatch(/tasks lost +7\n/);
  expect(text).toContain("mail l/1 (task #l/1) was acknowledged and has no outcome");
  expect(text).toContain("  and 2 more\n");
  expect(text).toMatch(/pool +1 +\(2 x 1\)/);
  expect(text).toMatch(/its process died +1\n/);
  expect(text).toContain("median 1500 ms");
  expect(described(audit([...crashed, ...again(1520)], terms))).toContain("no violation");
});

test("a report is plain data", () => {
  const report = audit([...crashed, ...again(3600), ...change(100, 110, "pool", null)], terms);
  expect(JSON.parse(JSON.stringify(report))).toEqual(report);
});
