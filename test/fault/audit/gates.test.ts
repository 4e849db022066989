import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import { change, dead, disturbance, found, pause, Tale, terminating, terms } from "./story.js";

let made = 0;
const pooled = (limits = ["pool"]) => new Tale(`p/${++made}`, { limits });
const ordered = (place: number, claims = {}) => new Tale(`o/${++made}`, { orderKey: "k", place, ...claims });

test("the audit finds a start above a total, however short", () => {
  const [a, b, c] = [pooled(), pooled(), pooled()];
  const two = [...a.whole(10, 50), ...b.whole(20, 60)];
  expect(found(two, c.whole(49, 70))).toEqual({ overLimit: 1 });
  expect(found(two, c.whole(49, 49))).toEqual({ overLimit: 1 });
  expect(found(two, c.whole(50, 70))).toEqual({});
});

test("the audit finds a start above the number of a key, for each key separately", () => {
  const run = (key: string) => pooled([`tenant/${key}`]).whole(10, 20);
  expect(found(run("x"), run("x"))).toEqual({ overLimit: 1 });
  expect(found(run("x"), run("y"))).toEqual({});
});

test("the audit counts a slot as held until the handler ends or its process is dead", () => {
  const [a, b, c] = [pooled(), pooled(), pooled()];
  const crashed = [...a.enqueued(0), a.begun(10), a.cancelling(90), a.accepted(95, "cancelled")];
  const others = [...b.whole(20, 80, { process: "w2" }), ...c.whole(50, 60, { process: "w2" })];
  expect(found(crashed, others, dead(51))).toEqual({ overLimit: 1 });
  expect(found(crashed, others, dead(49))).toEqual({});
});

test("the audit counts a zombie's slots only as long as its lease can last", () => {
  const [a, b, c] = [pooled(), pooled(), pooled()];
  const frozen = [...a.whole(10, 3020), ...b.whole(15, 3020), ...disturbance(20, 3010)];
  expect(found(frozen, c.whole(400, 410, { process: "w2" }))).toEqual({ overLimit: 1 });
  expect(found(frozen, c.whole(1100, 1110, { process: "w2" }))).toEqual({});
});

test("the audit allows a stopping worker to hold the slots of released tasks a moment longer", () => {
  const [a, b, c] = [pooled(), pooled(), pooled()];
  const handed = [...a.enqueued(0), ...a.ran(10, 100, "shutdown"), ...a.ran(200, 210), a.accepted(211)];
  const others = [...b.whole(20, 190, { process: "w2" }), ...c.whole(95, 190, { process: "w2" })];
  expect(found(handed, others, terminating(90))).toEqual({});
  expect(found(handed, others, terminating(97))).toEqual({ overLimit: 1 });
});

test("the audit applies a raised limit from the start of its change", () => {
  const three = [pooled(), pooled(), pooled()].flatMap((t) => t.whole(50, 60));
  expect(found(three, change(49, 70, "pool", 3))).toEqual({});
  expect(found(three, change(51, 70, "pool", 3))).toEqual({ overLimit: 1 });
});

test("the audit applies a lowered limit from the end of its change, also to tasks beside running ones", () => {
  const [a, b, c] = [pooled(), pooled(), pooled()];
  const long = [...a.whole(10, 900), ...b.whole(10, 200)];
  const lowered = change(100, 110, "pool", 1);
  expect(found(long, lowered)).toEqual({});
  expect(found(long, lowered, c.whole(205, 210))).toEqual({ overLimit: 1 });
  expect(found(long, lowered, c.whole(905, 910))).toEqual({});
});

test("the audit allows late starts of tasks claimed before a limit was lowered, as many as fitted", () => {
  const [a, b, c] = [pooled(), pooled(), pooled()];
  const lowered = [...a.whole(10, 900), ...change(100, 110, "pool", 1)];
  const report = audit([...lowered, ...b.whole(115, 200)], terms);
  expect(report).toMatchObject({ violations: 0, doubtful: { lateStarts: 1 } });
  expect(found(lowered, b.whole(115, 200), c.whole(116, 200))).toEqual({ overLimit: 1 });
  expect(found(lowered, b.whole(700, 710))).toEqual({ overLimit: 1 });
});

test("the audit allows no start under a limit of 0, and any under null", () => {
  const two = [pooled(), pooled(), pooled()].flatMap((t) => t.whole(1000, 1010));
  expect(found(two, change(10, 20, "pool", 0))).toEqual({ overLimit: 3 });
  expect(found(two, change(10, 20, "pool", null))).toEqual({});
});

test("the audit reads a number for every key with or without a star, and one for a key by its name", () => {
  const three = [1, 2, 3].flatMap(() => pooled(["tenant/x"]).whole(1000, 1010));
  expect(found(three)).toEqual({ overLimit: 2 });
  expect(found(three, change(10, 20, "tenant/*", 3))).toEqual({});
  expect(found(three, change(10, 20, "tenant", 3))).toEqual({});
  expect(found(three, change(10, 20, "tenant/x", 3))).toEqual({});
  expect(found(three, change(10, 20, "tenant/y", 3))).toEqual({ overLimit: 2 });
});

test("the audit applies a new limit from its first change", () => {
  const runs = [pooled(["new"]), pooled(["new"])].flatMap((t) => t.whole(1000, 1010));
  expect(found(runs)).toEqual({});
  expect(found(runs, change(10, 20, "new", 1))).toEqual({ overLimit: 1 });
});

test("the audit reports the peak of every limit for each of its numbers", () => {
  const pair = (at: number) => [pooled(), pooled()].flatMap((t) => t.whole(at, at + 10));
  const lines = [...pair(10), ...change(100, 110, "pool", 4), ...pair(120), ...pooled().whole(125, 130)];
  const key = pooled(["tenant/x"]).whole(10, 20);
  const { peaks, violations } = audit([...lines, ...key], terms);
  expect(violations).toBe(0);
  expect(peaks).toEqual([
    {
      limit: "pool",
      peak: 3,
      under: [
        { slots: 2, peak: 2, ms: 95 },
        { slots: 4, peak: 3, ms: 31 },
      ],
    },
    { limit: "tenant/*", peak: 1, under: [{ slots: 1, peak: 1, ms: 126 }] },
  ]);
});

test("the audit expects a task of an order key to start after its predecessor has ended", () => {
  const [one, two] = [ordered(1), ordered(2)];
  expect(found(one.whole(10, 20), two.whole(25, 30))).toEqual({});
  expect(found(two.whole(10, 20), one.whole(25, 30))).toEqual({ outOfOrder: 1 });
  expect(found(one.enqueued(0), one.cancelling(50), one.accepted(55, "cancelled"), two.whole(10, 20))).toEqual({
    outOfOrder: 1,
  });
});

test("the audit expects a task of an order key to start after its predecessor is recorded", () => {
  const [one, two] = [ordered(1), ordered(2)];
  const first = [...one.enqueued(0), ...one.ran(10, 20)];
  expect(found(first, one.accepted(26), two.whole(25, 30))).toEqual({ startedBeforeRecorded: 1 });
  expect(found(first, one.accepted(25), two.whole(25, 30))).toEqual({});
});

test("the audit does not count a retried task of an order key as ended", () => {
  const [one, two] = [ordered(1, { attempts: 2 }), ordered(2)];
  const retried = [
    ...one.enqueued(0),
    ...one.ran(10, 20, "thrown"),
    ...one.ran(50, 60, "completed", { attempt: 2 }),
    one.accepted(61),
  ];
  expect(found(retried, two.whole(30, 40))).toEqual({ outOfOrder: 1 });
  expect(found(retried, two.whole(70, 80))).toEqual({});
});

test("the audit ignores order keys of withdrawn tasks and of unacknowledged tasks that never ran", () => {
  const [one, two, three] = [ordered(1), ordered(2), ordered(3)];
  expect(found(one.offered(0), one.withdrawn(1), two.offered(2), three.whole(10, 20))).toEqual({});
  expect(found(two.offered(2), two.ran(30, 40), two.accepted(41), three.whole(10, 20))).toEqual({
    outOfOrder: 1,
  });
});

test("the audit allows a task retried by hand to run out of order, but not beside others of its key", () => {
  const [one, two] = [ordered(1), ordered(2)];
  const failed = [...one.enqueued(0), ...one.ran(10, 20, "thrown"), one.accepted(21, "failed")];
  const rest = [...two.whole(30, 100), one.retrying(40)];
  expect(found(failed, rest, one.ran(110, 120), one.accepted(121))).toEqual({});
  expect(found(failed, rest, one.ran(50, 60), one.accepted(61))).toEqual({ overlapped: 1 });
});

test("the audit allows a task that was retried by hand before its turn to run early", () => {
  const [one, two] = [ordered(1), ordered(2)];
  const cancelled = [...two.enqueued(3), two.cancelling(5), two.accepted(6, "cancelled")];
  const lines = [...one.enqueued(0), ...one.ran(30, 40), one.accepted(41), ...cancelled];
  const ahead = [...two.ran(10, 20), two.accepted(21)];
  expect(found(lines, two.retrying(8), ahead)).toEqual({});
});

test("the audit finds two overlapping tasks of an order key, also if the first is being cancelled", () => {
  const [one, two] = [ordered(1), ordered(2)];
  const first = [...one.enqueued(0), ...one.ran(10, 50, "cancelled"), one.cancelling(20)];
  expect(found(first, one.accepted(25, "cancelled"), two.whole(30, 60))).toEqual({ overlapped: 1 });
  expect(found(first, one.accepted(51, "cancelled"), two.whole(60, 70))).toEqual({});
});

test("the audit does not count a zombie as a running task of its order key", () => {
  const [one, two] = [ordered(1), ordered(2)];
  const taken = [...one.ran(1200, 1210, "completed", { process: "w2" }), one.accepted(1211)];
  const frozen = [...one.enqueued(0), ...one.ran(10, 3020), ...disturbance(20, 3010), ...taken];
  expect(found(frozen, two.whole(1220, 1230, { process: "w2" }))).toEqual({});
});

test("the audit finds a start of a paused type", () => {
  const run = new Tale("p/1").whole(700, 710);
  expect(found(run, pause(100, 1000, "mail"))).toEqual({ pausedStarts: 1 });
  expect(found(run, pause(100, 1000, "other"))).toEqual({});
  expect(found(run, pause(100, 690, "mail"))).toEqual({});
  const late = audit([...run, ...pause(690, 1000, "mail")], terms);
  expect(late).toMatchObject({ violations: 0, doubtful: { lateStarts: 1 } });
});
