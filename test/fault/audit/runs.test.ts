import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import type { Line } from "../../../fault/audit/line.js";
import { dead, disturbance, found, foundIn, Tale, terminating, terms } from "./story.js";

const w2 = { process: "w2" };
const t = new Tale("p/1", { attempts: 3 });
const begun = t.enqueued(0);
const again = (at: number): Line[] => [...t.ran(at, at + 10, "completed", w2), t.accepted(at + 11)];

/** What was found, and what allowed the second run if something did. */
function second(...lines: (Line | readonly Line[])[]) {
  const report = audit([...begun, ...lines.flat()], terms);
  return { found: foundIn(report), because: Object.keys(report.ranAgain) };
}

const doubled = { found: { ranTwiceWithoutCause: 1 }, because: [] };
const allowed = (...because: string[]) => ({ found: {}, because });

test("the audit finds a task that runs twice at once", () => {
  expect(second(t.ran(10, 50), again(30))).toEqual(doubled);
  expect(second(t.ran(10, 30, "shutdown"), again(30), terminating(9))).toEqual(allowed("shutdown"));
});

test("the audit finds a task that runs again after it completed", () => {
  expect(second(t.ran(10, 20), again(30))).toEqual(doubled);
  expect(second(t.ran(10, 20, "thrown"), again(30))).toEqual(allowed("thrown"));
  expect(second(t.ran(10, 20, "snoozed"), again(30))).toEqual(allowed("snoozed"));
});

test("the audit allows a task to run again after its process died, and not before", () => {
  expect(second(t.begun(10), dead(20), again(900))).toEqual(allowed("its process died"));
  expect(second(t.begun(10), dead(20), again(19))).toEqual(doubled);
  expect(second(t.begun(10), dead(20, "w3"), again(900))).toEqual({
    found: { ranTwiceWithoutCause: 1 },
    because: [],
  });
});

test("the audit orders a line written at the moment of death before the death", () => {
  expect(second(t.begun(20), dead(20), again(900))).toEqual(allowed("its process died"));
  const unrecorded = allowed("its end may be unrecorded");
  expect(second(t.ran(10, 20), dead(20), again(900))).toEqual(unrecorded);
});

test("the audit allows a rerun after a completion that may be unrecorded", () => {
  const completed = t.ran(10, 20);
  const unrecorded = allowed("its end may be unrecorded");
  expect(second(completed, dead(21), again(900))).toEqual(unrecorded);
  expect(second(completed, disturbance(19, 22, "w1", "cut"), again(900))).toEqual(unrecorded);
  expect(second(completed, disturbance(19, 22, "*", "restart"), again(900))).toEqual(unrecorded);
  expect(second(completed, disturbance(19, 22, "w3"), again(900))).toEqual(doubled);
  expect(second(completed, disturbance(910, 922), again(900))).toEqual(doubled);
  const longAgo = [...disturbance(100, 200), ...t.ran(5000, 5010)];
  expect(second(longAgo, again(5900))).toEqual(doubled);
});

test("the audit expects an orderly shutdown to record completed tasks", () => {
  const completed = t.ran(10, 20);
  expect(second(completed, terminating(30), dead(40), again(900))).toEqual(doubled);
  const meanwhile = second(completed, terminating(15), dead(40), again(900));
  expect(meanwhile).toEqual(allowed("it ended while its process did"));
});

test("the audit finds a rerun of a task whose outcome is recorded, whatever was disturbed", () => {
  const disturbed = [...disturbance(19, 25, "*", "restart"), ...disturbance(19, 25, "w2", "cut")];
  const recorded = [...t.ran(10, 20), t.accepted(21), ...disturbed];
  const rerun = t.ran(900, 910, "shutdown", w2);
  expect(found(begun, recorded, rerun)).toEqual({ ranTwiceWithoutCause: 1 });
  expect(found(begun, recorded)).toEqual({});
});

test("the audit allows a retry by hand of a failed task, but not beside itself", () => {
  const failed = [...t.ran(10, 20, "thrown"), ...t.ran(30, 40, "thrown", { attempt: 2 })];
  const last = [...t.ran(50, 60, "thrown", { attempt: 3 }), t.accepted(61, "failed")];
  expect(second(failed, last, t.retrying(70), again(80))).toMatchObject({ found: {} });
  expect(second(failed, last, again(80)).found).toMatchObject({ ranTwiceWithoutCause: 1 });
  const beside = [t.retrying(70), ...t.ran(75, 90), ...again(80)];
  expect(second(failed, last, beside).found).toEqual({ ranTwiceWithoutCause: 1 });
});

test("the audit allows a retry by hand after any outcome", () => {
  const cancelled = [...t.ran(10, 20, "cancelled"), t.accepted(21, "cancelled"), t.retrying(30)];
  const { found: none, because } = second(cancelled, t.ran(40, 50, "thrown"), again(60));
  expect([none, because]).toEqual([{}, ["retried by hand", "thrown"]]);
});

test("the audit allows a task of a frozen process to be taken over once its lease can be lost", () => {
  const frozen = [...t.ran(10, 3020), ...disturbance(20, 3010)];
  expect(second(frozen, again(1200))).toEqual(allowed("its lease may be lost"));
  expect(second(frozen, again(300))).toEqual(doubled);
  const report = audit([...begun, ...frozen, ...again(1200)], terms);
  expect(report.zombies).toEqual({ runs: 1, completedOutside: 1, succeededByZombiesAlone: 0 });
  expect(report.doubtful).toEqual({ runs: 1, starts: 0, lateStarts: 0 });
  const short = [...t.ran(10, 900), ...disturbance(20, 220)];
  expect(second(short, again(700))).toEqual(doubled);
});

test("the audit allows a frozen process to start tasks that it claimed before, and counts them as doubtful", () => {
  const asleep = [...new Tale("p/2").whole(10, 20), ...disturbance(25, 3010)];
  const early = [...t.ran(1500, 1510, "completed", w2), t.accepted(1511)];
  const late = t.ran(3015, 3020);
  const report = audit([...begun, ...asleep, ...early, ...late], terms);
  expect(report.violations).toBe(0);
  expect(report.doubtful.starts).toBe(1);
  expect(report.zombies).toMatchObject({ runs: 1, completedOutside: 1 });
  // A process that speaks all the time was not asleep.
  const awake = [...asleep, ...new Tale("p/3").whole(2990, 3000)].concat(
    [1, 2, 3, 4, 5, 6].flatMap((n) => new Tale(`q/${n}`).whole(n * 450, n * 450 + 5)),
  );
  expect(found(begun, awake, early, late)).toEqual({ ranTwiceWithoutCause: 1 });
});

test("the audit does not count a disturbance of all workers as a freeze", () => {
  const early = [...t.ran(10, 20, "completed", w2), t.accepted(21)];
  const late = [...disturbance(25, 3010, "*", "restart"), ...t.ran(3015, 3020)];
  expect(found(begun, early, late)).toEqual({ ranTwiceWithoutCause: 1 });
});

test("the audit counts leases lost without a disturbance separately", () => {
  const lost = [...t.ran(10, 1500, "lease_lost"), ...again(1450)];
  const report = audit([...begun, ...lost], terms);
  expect(report).toMatchObject({ violations: 0, leasesLost: 1, zombies: { runs: 1 } });
  const announced = audit([...begun, ...lost, ...disturbance(100, 1400)], terms);
  expect(announced.leasesLost).toBe(0);
});

test("the audit counts successes that only a zombie explains separately", () => {
  const frozen = [...t.ran(10, 3020), ...disturbance(20, 3010), t.accepted(3021)];
  const report = audit([...begun, ...frozen], terms);
  expect(report.violations).toBe(0);
  expect(report.zombies.succeededByZombiesAlone).toBe(1);
});
