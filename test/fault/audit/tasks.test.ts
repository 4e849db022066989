import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import type { Line } from "../../../fault/audit/line.js";
import { dead, disturbance, found, line, Tale, terminating, terms } from "./story.js";

const tale = (claims = {}): Tale => new Tale("p/1", claims);

test("the audit finds nothing in a correct log, in any order of its lines", () => {
  const lines = [...tale().whole(10, 20), ...new Tale("p/2").whole(15, 30)];
  expect(found(lines)).toEqual({});
  expect(found(lines.toReversed())).toEqual({});
});

test("the audit finds an acknowledged task without an outcome, whether it ran or not", () => {
  const t = tale();
  expect(found(t.enqueued(0))).toEqual({ lost: 1 });
  expect(found(t.enqueued(0), t.ran(10, 20))).toEqual({ lost: 1 });
  expect(found(t.offered(0))).toEqual({});
});

test("the audit finds an unacknowledged task that ran and has no outcome", () => {
  const t = tale();
  expect(found(t.offered(0), t.ran(10, 20))).toEqual({ lost: 1 });
  expect(found(t.offered(0), t.ran(10, 20), t.accepted(21))).toEqual({});
});

test("the audit expects another outcome after a retry by hand that ran", () => {
  const t = tale();
  const failed = [...t.enqueued(0), ...t.ran(10, 20, "thrown"), t.accepted(21, "failed")];
  const again = [t.retrying(30), ...t.ran(40, 50)];
  expect(found(failed, again)).toEqual({ lost: 1 });
  expect(found(failed, again, t.accepted(51))).toEqual({});
  expect(found(failed, t.retrying(30))).toEqual({});
});

test("the audit expects a handler to complete before a success is recorded", () => {
  const t = tale();
  expect(found(t.enqueued(0), t.accepted(21))).toEqual({ succeededWithoutRun: 1 });
  const thrown = [...t.enqueued(0), ...t.ran(10, 20, "thrown"), t.accepted(21)];
  expect(found(thrown)).toEqual({ succeededWithoutRun: 1 });
  expect(found(t.enqueued(0), t.ran(10, 20), t.accepted(15))).toEqual({ succeededTooEarly: 1 });
  expect(found(t.enqueued(0), t.ran(10, 20), t.accepted(20))).toEqual({});
});

test("the audit expects a success to carry the claim of a handler that completed", () => {
  const t = tale({ attempts: 2 });
  const first = t.ran(10, 20, "thrown");
  const second = t.ran(30, 40, "completed", { attempt: 2 });
  const lines = [...t.enqueued(0), ...first, ...second];
  expect(found(lines, t.accepted(41, "succeeded", { of: second[0]! }))).toEqual({});
  expect(found(lines, t.accepted(41, "succeeded", { of: first[0]! }))).toEqual({
    succeededWithoutRun: 1,
  });
  const nobody = { ...t.accepted(41), claim: null } as Line;
  expect(found(lines, nobody)).toEqual({ succeededWithoutRun: 1 });
});

test("the audit finds a recorded success of a zombie after another execution has started", () => {
  const t = tale();
  const zombie = t.ran(10, 3_020);
  const heir = t.ran(1_500, 3_100, "completed", { process: "w2" });
  const lines = [...t.enqueued(0), ...zombie, ...heir, ...disturbance(20, 3_010)];
  expect(found(lines, t.accepted(3_101, "succeeded", { of: heir[0]! }))).toEqual({});
  const wrong = found(lines, t.accepted(3_021, "succeeded", { of: zombie[0]! }));
  expect(wrong).toEqual({ acceptedFromZombie: 1 });
  // What starts when a frozen process wakes may stem from a claim that was over long before.
  const late = [...t.enqueued(0), ...disturbance(15, 3_010)];
  const mine = t.ran(1_500, 3_100, "completed", { process: "w2" });
  const asleep = t.ran(3_015, 3_030);
  expect(found(late, mine, asleep, t.accepted(3_101, "succeeded", { of: mine[0]! }))).toEqual({});
});

test("the audit expects a failure to use up all attempts by errors and timeouts", () => {
  const t = tale({ attempts: 2 });
  const first = [...t.enqueued(0), ...t.ran(10, 20, "thrown")];
  expect(found(first, t.accepted(21, "failed"))).toEqual({ failedWithoutCause: 1 });
  const second = (how: string) => t.ran(30, 40, how, { attempt: 2 });
  expect(found(first, second("timeout"), t.accepted(41, "failed"))).toEqual({});
  const shut = found(first, second("shutdown"), t.accepted(41, "failed"));
  expect(shut).toEqual({ failedWithoutCause: 1 });
});

test("the audit expects a poisoned task to have been in flight at enough crashes", () => {
  const t = tale();
  const deaths = (n: number) =>
    Array.from({ length: n }, (_, i) => [
      ...t.ran(10 + 1_000 * i, 20, "completed", { process: `w${i}` }).slice(0, 1),
      dead(15 + 1_000 * i, `w${i}`),
    ]).flat();
  const poisoned = t.accepted(9_000, "failed", { code: "poisoned" });
  expect(found(t.enqueued(0), deaths(4), poisoned)).toEqual({});
  // One may have died before it had started the handler.
  expect(found(t.enqueued(0), deaths(3), poisoned)).toEqual({});
  expect(found(t.enqueued(0), deaths(2), poisoned)).toEqual({ failedWithoutCause: 1 });
  const other = t.accepted(9_000, "failed", { code: "other" });
  expect(found(t.enqueued(0), deaths(4), other)).toEqual({ failedWithoutCause: 1 });
});

test("the audit allows a process that dies in a disturbance to have held a task without a line", () => {
  const t = tale();
  const seen = [...t.ran(10, 20).slice(0, 1), dead(15)];
  const poisoned = t.accepted(45_000, "failed", { code: "poisoned" });
  const others = (disturbed: boolean) =>
    inTurn(4, (process, at) => [
      ...new Tale(process).ran(at, at + 10, "completed", { process }),
      ...(disturbed ? disturbance(at + 20, at + 100, "*", "restart") : []),
      dead(at + 90, process),
    ]);
  expect(found(t.enqueued(0), seen, others(true), poisoned).failedWithoutCause).toBeUndefined();
  expect(found(t.enqueued(0), seen, others(false), poisoned).failedWithoutCause).toBe(1);
});

/** The lines of this many workers, one after the other. */
function inTurn(n: number, mishap: (worker: string, at: number) => Line[]): Line[] {
  return Array.from({ length: n }, (_, i) => mishap(`w${i}`, 10_000 * (i + 1))).flat();
}

test.each(["freeze", "freeze-in-claim", "block-loop"])(
  "the audit counts a frozen worker (%s) as crashed with its tasks in flight",
  (what) => {
    const t = tale({ attempts: 9 });
    const still = inTurn(4, (process, at) => [
      ...t.ran(at, at + 3_100, "lease_lost", { process }),
      ...disturbance(at + 10, at + 3_000, process, what),
    ]);
    const poisoned = t.accepted(45_000, "failed", { code: "poisoned" });
    expect(found(t.enqueued(0), still, poisoned)).toEqual({});
    const brief = inTurn(4, (process, at) => [
      ...t.ran(at, at + 600, "lease_lost", { process }),
      ...disturbance(at + 10, at + 400, process, what),
    ]);
    expect(found(t.enqueued(0), brief, poisoned)).toEqual({ failedWithoutCause: 1 });
  },
);

test.each([
  ["black-hole", false],
  ["half-open", false],
  ["restart", true],
] as const)("the audit does not count a disconnected worker (%s) as crashed", (what, all) => {
  const t = tale({ attempts: 9 });
  const cut = inTurn(4, (process, at) => [
    ...t.ran(at, at + 1_000, "lease_lost", { process }),
    ...disturbance(at + 10, at + 3_000, all ? "*" : process, what),
  ]);
  const poisoned = t.accepted(45_000, "failed", { code: "poisoned" });
  expect(found(t.enqueued(0), cut, poisoned)).toEqual({ failedWithoutCause: 1 });
  expect(found(t.enqueued(0), cut, t.ran(44_000, 44_010), t.accepted(44_011))).toEqual({});
  // A process killed before it could report that it survived counts as dead.
  const killed = [0, 1, 2].map((i) => dead(10_000 * (i + 1) + 3_100, `w${i}`));
  expect(found(t.enqueued(0), cut, killed, poisoned)).toEqual({});
});

test("the audit counts a lost lease as a crash, and a released task as none", () => {
  const t = tale({ attempts: 9 });
  const poisoned = t.accepted(45_000, "failed", { code: "poisoned" });
  const left = (why: string) =>
    inTurn(4, (process, at) => [
      ...t.ran(at, at + 1_000, why, { process }),
      ...(why === "shutdown" ? [terminating(at + 990, process), dead(at + 1_010, process)] : []),
    ]);
  expect(found(t.enqueued(0), left("lease_lost"), poisoned)).toEqual({});
  expect(found(t.enqueued(0), left("shutdown"), poisoned)).toEqual({ failedWithoutCause: 1 });
});

test("the audit counts crashes from zero after a retry by hand", () => {
  const t = tale();
  const deaths = (n: number, from: number) =>
    Array.from({ length: n }, (_, i) => [
      t.begun(from + 1_000 * i, { process: `w${from + i}` }),
      dead(from + 1_000 * i + 5, `w${from + i}`),
    ]).flat();
  const first = [...deaths(4, 10), t.accepted(9_000, "failed", { code: "poisoned" })];
  const again = (n: number) => [
    t.retrying(10_000),
    ...deaths(n, 11_000),
    t.accepted(19_000, "failed", { code: "poisoned" }),
  ];
  expect(found(t.enqueued(0), first, again(4))).toEqual({});
  expect(found(t.enqueued(0), first, again(2))).toEqual({ failedWithoutCause: 1 });
});

test("the audit expects all attempts to be used up again after a retry by hand", () => {
  const t = tale({ attempts: 2 });
  const failing = (at: number) => [
    ...t.ran(at, at + 10, "thrown"),
    ...t.ran(at + 20, at + 30, "thrown", { attempt: 2 }),
  ];
  const first = [...t.enqueued(0), ...failing(10), t.accepted(41, "failed"), t.retrying(50)];
  expect(found(first, failing(60), t.accepted(91, "failed"))).toEqual({});
  const early = found(first, failing(60).slice(0, 2), t.accepted(91, "failed"));
  expect(early).toEqual({ failedWithoutCause: 1 });
});

test("the audit expects a cancel to be requested or thrown by a handler", () => {
  const t = tale();
  expect(found(t.enqueued(0), t.accepted(9, "cancelled"))).toEqual({ cancelledWithoutCause: 1 });
  expect(found(t.enqueued(0), t.cancelling(5), t.accepted(9, "cancelled"))).toEqual({});
  const own = [...t.enqueued(0), ...t.ran(5, 8, "cancelled"), t.accepted(9, "cancelled")];
  expect(found(own)).toEqual({});
});

test("the audit finds a start of a task that was never offered or was withdrawn", () => {
  const t = tale();
  const ran = [...t.ran(10, 20), t.accepted(21)];
  expect(found(ran)).toEqual({ neverEnqueued: 1 });
  expect(found(ran, t.offered(15))).toEqual({ neverEnqueued: 1 });
  expect(found(ran, t.offered(0), t.withdrawn(5))).toEqual({ neverEnqueued: 1 });
  expect(found(ran, t.offered(0))).toEqual({});
});

test.each([{ type: "other" }, { orderKey: "k", place: 1 }, { limits: ["pool"] }, { runAt: 3 }, { attempts: 7 }])(
  "the audit finds a start that differs from its offer by %j",
  (claims) => {
    const [offered, ran] = [tale(), tale(claims)];
    const lines = [...ran.ran(10, 20), ran.accepted(21)];
    expect(found(offered.offered(0), lines)).toEqual({ neverEnqueued: 1 });
    expect(found(ran.offered(0), lines)).toEqual({});
  },
);

test("the audit finds an offer that became two tasks", () => {
  const t = tale();
  const other = line(2, "producer", { kind: "acknowledged", tag: "p/1", task: "#other" });
  const accepted = line(9, "queue", {
    kind: "accepted",
    task: "#other",
    state: "cancelled",
    attempt: 0,
    claim: null,
  });
  const cancelling = line(8, "operator", { kind: "cancelling", task: "#other" });
  expect(found(t.whole(10, 20), other, cancelling, accepted)).toEqual({ neverEnqueued: 1 });
  expect(found(t.whole(10, 20), t.offered(1), other, cancelling, accepted)).toEqual({});
});

test("the audit expects one outcome, and one more for each retry by hand", () => {
  const t = tale();
  const failed = [...t.enqueued(0), ...t.ran(10, 20, "thrown"), t.accepted(21, "failed")];
  expect(found(failed, t.accepted(22, "failed"))).toMatchObject({ acceptedTwice: 1 });
  const again = [...t.ran(40, 50, "thrown"), t.accepted(51, "failed")];
  expect(found(failed, t.retrying(30), again)).toEqual({});
  expect(found(failed, again, t.retrying(60))).toMatchObject({ acceptedTwice: 1 });
});

test("the audit accepts no excuse from a refused retry by hand", () => {
  const t = tale({ attempts: 2 });
  const failed = [...t.enqueued(0), ...t.ran(5, 6, "thrown")];
  const last = [...failed, ...t.ran(10, 20, "thrown", { attempt: 2 }), t.accepted(21, "failed")];
  const again = [...t.ran(40, 50), t.accepted(51)];
  expect(found(last, t.retrying(30), again)).toEqual({});
  const refused = found(last, t.retrying(30), t.notRetried(31), again);
  expect(refused).toEqual({ acceptedTwice: 1, ranTwiceWithoutCause: 1 });
  // One of two concurrent requests takes effect.
  expect(found(last, t.retrying(30), t.retrying(32), t.notRetried(33), again)).toEqual({});
});

test("the audit finds a start before its time", () => {
  const t = tale({ runAt: 100 });
  expect(found(t.enqueued(0), t.ran(99.5, 110), t.accepted(111))).toEqual({ early: 1 });
  // A retry by hand starts the task immediately.
  const ended = [...t.enqueued(0), t.cancelling(5), t.accepted(6, "cancelled")];
  expect(found(ended, t.retrying(10), t.ran(20, 30), t.accepted(31))).toEqual({});
  expect(found(t.enqueued(0), t.ran(100, 110), t.accepted(111))).toEqual({});
});

test("the audit finds a start before the end of a snooze, unless the snooze was never recorded", () => {
  const t = tale();
  const [start, end] = t.ran(10, 20, "snoozed");
  const ended = (snoozeMs: unknown) => ({ ...end!, snoozeMs }) as Line;
  const first = [...t.enqueued(0), start!, ended(50)];
  expect(found(first, t.ran(60, 70), t.accepted(71))).toEqual({ early: 1 });
  expect(found(first, t.ran(70, 80), t.accepted(81))).toEqual({});
  expect(found(first, t.ran(60, 70, "completed", { process: "w2" }), t.accepted(71), dead(30))).toEqual({});
  const untold = [...t.enqueued(0), start!, ended(undefined)];
  expect(found(untold, t.ran(90, 95), t.accepted(96))).toMatchObject({ wrong: 1 });
});

test.each(["shutdown", "lease_lost", "crash"])("the audit expects %s to use up no attempt", (how) => {
  const t = tale({ attempts: 3 });
  const first = how === "crash" ? [t.begun(10), dead(20)] : t.ran(10, 20, how);
  const second = (attempt: number) => [...t.ran(900, 910, "completed", { process: "w2", attempt }), t.accepted(911)];
  expect(found(t.enqueued(0), first, second(2))).toEqual({ attemptsBurnt: 1 });
  expect(found(t.enqueued(0), first, second(1))).toEqual({});
});

test.each(["thrown", "timeout"])("the audit expects %s to use up an attempt", (how) => {
  const t = tale({ attempts: 3 });
  const first = [...t.enqueued(0), ...t.ran(10, 20, how)];
  const second = (attempt: number) => [...t.ran(30, 40, "completed", { attempt }), t.accepted(41)];
  expect(found(first, second(2))).toEqual({});
  expect(found(first, second(3))).toEqual({ attemptsBurnt: 1 });
});

test("the audit expects a retry by hand to start with the first attempt", () => {
  const t = tale();
  const failed = [...t.enqueued(0), ...t.ran(10, 20, "thrown"), t.accepted(21, "failed"), t.retrying(25)];
  const again = (attempt: number) => [...t.ran(30, 40, "completed", { attempt }), t.accepted(41)];
  expect(found(failed, again(1))).toEqual({});
  expect(found(failed, again(2))).toEqual({ attemptsBurnt: 1 });
});

test("the audit does not count attempts before a retry by hand", () => {
  const t = tale({ attempts: 2 });
  const thrown = [...t.ran(10, 20, "thrown"), ...t.ran(30, 40, "thrown", { attempt: 2 })];
  const failed = [...t.enqueued(0), ...thrown, t.accepted(41, "failed"), t.retrying(45)];
  const again = (attempt: number) => [...t.ran(50, 60, "completed", { attempt }), t.accepted(61)];
  expect(found(failed, again(1))).toEqual({});
  expect(found(failed, again(2))).toEqual({ attemptsBurnt: 1 });
});

test("the audit allows a handler that ended near its timeout to have used an attempt or not", () => {
  const lines = (timeoutMs: number | null) => {
    const t = tale({ attempts: 3, timeoutMs });
    const first = t.ran(10, 120);
    const again = t.ran(130, 140, "completed", { attempt: 2 });
    return [...t.enqueued(0), ...first, ...again, t.accepted(141)];
  };
  expect(found(lines(150))).toEqual({});
  expect(found(lines(null))).toEqual({ ranTwiceWithoutCause: 1, attemptsBurnt: 1 });
});

test("the audit counts a handler that is aborted while it writes its first line as ended", () => {
  const t = tale();
  const [start, end] = t.ran(20, 15, "shutdown");
  const rest = [...t.ran(21, 30, "completed", { process: "w2" }), t.accepted(31)];
  const report = audit([...t.enqueued(0), start!, end!, ...rest, terminating(10)], terms);
  expect([report.violations, report.unended]).toEqual([0, 0]);
});

test("the audit reports slots held at rest and violations of the schema's view", () => {
  const held = (slots: number) => line(99, "runner", { kind: "held", limit: "pool", slots });
  expect(found(held(2))).toEqual({ heldAtRest: 1 });
  expect(found(held(0))).toEqual({});
  expect(found(line(99, "runner", { kind: "wrong", what: "a waiter nobody wakes" }))).toEqual({
    wrong: 1,
  });
});

test("the audit counts executions without an end", () => {
  const t = tale();
  const report = audit([...t.enqueued(0), t.begun(10), ...disturbance(20, 30)], terms);
  expect(report).toMatchObject({ unended: 1, runs: 1, tasks: 1, disturbances: 1 });
});
