import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import type { Hold, Line, Waiting } from "../../../fault/audit/line.js";
import { change, dead, disturbance, found, line, pause, Tale, terms } from "./story.js";

const t = new Tale("p/1", { limits: ["pool", "tenant/x"] });
const other = new Tale("p/2", { type: "bill" });
const next: Hold = { kind: "next", before: 0 };
const holder = (runs: boolean, { task, claims }: Tale = other) => ({
  task,
  type: claims.type,
  runs,
});
const limit = (...holders: NonNullable<Hold["holders"]>): Hold => ({
  kind: "limit",
  name: "tenant",
  key: "x",
  slots: 1,
  before: 0,
  holders,
});

const waits = (hold: Hold | readonly Hold[], about: Partial<Waiting> = {}): Waiting => ({
  task: t.task,
  type: t.claims.type,
  first: true,
  reasons: [hold].flat(),
  ...about,
});

interface Look {
  readonly from?: number;
  readonly to?: number;
  readonly everyMs?: number;
  readonly open?: number;
  readonly room?: number;
}

/** Samples, one a second, that all say the same. */
function samples(waiting: readonly Waiting[], look: Look = {}): Line[] {
  const { from = 10_000, to = 14_000, everyMs = 1_000, open = 1, room = 10 } = look;
  const times = Array.from({ length: Math.floor((to - from) / everyMs) + 1 }, (_, n) => n);
  return times.map((n) => line(from + n * everyMs, "harness", { kind: "explained", open, room, tasks: waiting }));
}

/** The task waits for so long, and then runs. */
const late = (at = 20_000): Line[] => [...t.enqueued(5_000), ...t.ran(at, at + 5), t.accepted(at + 6)];

const seen = (...lines: (Line | readonly Line[])[]) => found(late(), ...lines);

test("the audit finds a runnable task as starved after a second and an allowance, and reports it once", () => {
  expect(seen(samples([waits(next)], { to: 13_000 }))).toEqual({});
  expect(seen(samples([waits(next)], { to: 13_100, everyMs: 775 }))).toEqual({ starved: 1 });
  expect(seen(samples([waits(next)], { to: 19_000 }))).toEqual({ starved: 1 });
});

test("the audit counts each starved task", () => {
  const both = [waits(next), waits(next, { task: other.task, type: "bill" })];
  const lines = [...other.enqueued(5_000), ...other.ran(20_000, 20_005), other.accepted(20_006)];
  expect(seen(lines, samples(both))).toEqual({ starved: 2 });
});

test("the audit finds a starved task whose only holders do not run", () => {
  expect(seen(samples([waits(limit(holder(false)))]))).toEqual({ starved: 1 });
});

test("the audit finds a task starved by used slots that no task holds", () => {
  expect(seen(samples([waits(limit())]))).toEqual({ starved: 1 });
  const key: Hold = { kind: "order", key: "k", before: 0, holders: [] };
  expect(seen(samples([waits(key)]))).toEqual({ starved: 1 });
});

test.each<[string, Hold | readonly Hold[]]>([
  ["a holder that runs", limit(holder(false), holder(true))],
  ["a second hold", [limit(holder(false)), { kind: "paused" }]],
  ["a number of 0", { ...limit(), slots: 0 }],
  ["those before it, which have the free slots next", { ...limit(), before: 1 }],
  ["a task of its own type at a key", limit(holder(false, t))],
  ["the head of its order key", { kind: "order", key: "k", before: 0, holders: [holder(false)] }],
  ["the order of a window", { ...limit(holder(false)), kind: "window" }],
  ["its time", { kind: "scheduled" }],
  ["no worker with room", { kind: "busy", before: 0 }],
  ["no worker", { kind: "noWorker" }],
])("the audit does not count a task as starved that is held by %s", (_, hold) => {
  expect(seen(samples([waits(hold)], { to: 19_000 }))).toEqual({});
});

test("the audit does not count a task as starved that is not first at its totals", () => {
  expect(seen(samples([waits(next, { first: false })], { to: 19_000 }))).toEqual({});
});

test("the audit starts a new wait when the slot passes to another holder", () => {
  const [a, b] = [waits(limit(holder(false))), waits(limit(holder(false, new Tale("p/3"))))];
  const lines = Array.from({ length: 9 }, (_, n) =>
    samples([n % 2 === 0 ? a : b], { from: 10_000 + n * 1_000, to: 10_000 + n * 1_000 }),
  );
  expect(seen(...lines)).toEqual({});
});

test("the audit counts no task as starved while workers have less room than runnable tasks", () => {
  expect(seen(samples([waits(next)], { open: 11, room: 10 }))).toEqual({});
  expect(seen(samples([waits(next)], { open: 10, room: 10 }))).toEqual({ starved: 1 });
});

test("the audit does not join samples that are far apart", () => {
  expect(seen(samples([waits(next)], { to: 19_000, everyMs: 3_000 }))).toEqual({});
});

test("the audit ends a wait with a sample that does not name the task", () => {
  const two = [samples([waits(next)], { to: 12_000 }), samples([], { from: 13_000, to: 13_000 })];
  expect(seen(...two, samples([waits(next)], { from: 14_000, to: 17_000 }))).toEqual({});
});

const fault = (from: number, to: number): Line[] => [
  line(from, "harness", { kind: "faultBegun", what: "migrate" }),
  line(to, "harness", { kind: "faultOver", what: "migrate" }),
];

// The lease and the time of a recovery are 3 s.
test.each<[string, Line[], Line[]]>([
  ["a fault", fault(11_000, 12_000), fault(5_000, 6_999)],
  ["a fault shortly before", fault(6_000, 9_500), fault(5_000, 6_999)],
  ["a disturbed worker", disturbance(6_000, 9_500), disturbance(5_000, 6_999)],
  ["a dead worker", [dead(9_500, "w9")], [dead(6_999, "w9")]],
])("the audit does not count a task as starved beside %s, but does long after it", (_, near, far) => {
  expect(seen(samples([waits(next)]), near)).toEqual({});
  expect(seen(samples([waits(next)]), far)).toEqual({ starved: 1 });
});

test("the audit starts a new wait after an execution, a pause of the type and a change of the limit", () => {
  const all = samples([waits(next)]);
  const again = t.ran(11_500, 11_600, "shutdown");
  expect(seen(all, again)).toEqual({});
  expect(seen(all, pause(11_400, 11_600, "mail"))).toEqual({});
  expect(seen(all, pause(11_400, 11_600, "bill"))).toEqual({ starved: 1 });
  expect(seen(all, change(11_400, 11_600, "tenant/*", 1))).toEqual({});
  expect(seen(all, change(11_400, 11_600, "other", 1))).toEqual({ starved: 1 });
});

test("the audit reports how many samples it used in calm times", () => {
  const lines = [...late(), ...samples([waits(next)]), ...fault(11_500, 12_000)];
  expect(audit(lines, terms).watched).toEqual({ samples: 5, calm: 2, tasks: 2, longestMs: 1_000 });
});
