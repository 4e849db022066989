import { expect, test } from "vitest";
import { audit, type Entry, type Line, type Report } from "../../examples/demo/audit.js";
import { importsOf } from "../tidy/modules.js";

const EMPTY = {
  worker: null,
  task: null,
  claim: null,
  attempt: null,
  type: null,
  tenant: null,
  order_key: null,
  place: null,
  limits: null,
  recorded: null,
  slots: null,
};

/** Log lines at the listed times. */
function logOf(entries: readonly (readonly [number, Entry])[]): Line[] {
  return entries.map(([at, entry]) => ({ ...EMPTY, ...entry, at })).toSorted((a, b) => a.at - b.at);
}

interface RunOptions extends Partial<Entry> {
  readonly start: number;
  readonly end?: number;
  readonly left?: number;
}

/** The log lines of one run. */
function run(task: string, { start, end, left, ...about }: RunOptions): [number, Entry][] {
  const entry = { task, claim: `${start}`, worker: "w1", type: "mail", limits: [], ...about };
  const lines: [number, Entry][] = [[start, { ...entry, kind: "start" }]];
  if (end !== undefined) lines.push([end, { ...entry, kind: "end" }]);
  if (left !== undefined) lines.push([left, { ...entry, kind: "left" }]);
  return lines;
}

const acknowledged = (...tasks: string[]): [number, Entry][] =>
  tasks.map((task) => [0, { kind: "acknowledged", task }]);
const set = (at: number, limit: string, slots: number): [number, Entry] => [
  at,
  { kind: "set", limits: [limit], slots },
];
const asked = (at: number, limit: string, slots: number): [number, Entry] => [
  at,
  { kind: "asked", limits: [limit], slots },
];
const dead = (at: number, worker: string): [number, Entry] => [at, { kind: "dead", worker }];
const check = (...entries: (readonly [number, Entry])[]): Report => audit(logOf(entries));
const inA = (place: number, at: Omit<RunOptions, "place">): RunOptions => ({
  order_key: "a",
  place,
  ...at,
});

test("the demo audit finds nothing in a correct log", () => {
  const report = check(
    ...acknowledged("1", "2"),
    set(1, "gateway", 2),
    ...run("1", { start: 2, end: 5, limits: ["gateway"], order_key: "a", place: 0 }),
    ...run("2", { start: 5, end: 6, limits: ["gateway"], order_key: "a", place: 1 }),
  );
  expect(report).toEqual({
    lost: 0,
    doubled: 0,
    overLimit: 0,
    outOfOrder: 0,
    acknowledged: 2,
    runs: 2,
    orderKeys: 1,
    peaks: [{ limit: "gateway", slots: 2, peak: 1 }],
    reclaimedAfterMs: [],
    findings: [],
  });
});

test("the demo audit reports an acknowledged task without an end as lost, even if it started", () => {
  expect(
    check(...acknowledged("1", "2", "3"), ...run("1", { start: 1, end: 2 }), ...run("2", { start: 1, left: 2 })),
  ).toMatchObject({ lost: 2, findings: ["2 was lost", "3 was lost"] });
});

test("the demo audit reports two ends of one task as a double", () => {
  const twice = [...run("1", { start: 1, end: 2 }), ...run("1", { start: 5, end: 6, worker: "w2" })];
  expect(check(...twice)).toMatchObject({
    doubled: 1,
    findings: ["mail 1 was completed by w1 and w2"],
  });
});

test("the demo audit counts a rerun as reclaimed if the worker died before its end was recorded", () => {
  const again = run("1", { start: 50, end: 60, worker: "w2" });
  expect(check(...run("1", { start: 1, end: 2 }), dead(10, "w1"), ...again)).toMatchObject({
    doubled: 0,
    reclaimedAfterMs: [40],
  });
  expect(check(...run("1", { start: 1 }), dead(10, "w1"), ...again)).toMatchObject({
    doubled: 0,
    reclaimedAfterMs: [40],
  });
});

test("the demo audit reports a rerun after a recorded end as a double, even after a crash", () => {
  const recorded = { recorded: true };
  expect(
    check(
      ...run("1", { start: 1, end: 2, ...recorded }),
      dead(10, "w1"),
      ...run("1", { start: 50, end: 60, worker: "w2", ...recorded }),
    ),
  ).toMatchObject({ doubled: 1, reclaimedAfterMs: [] });
});

test("the demo audit reports a double if a task is reassigned from a live worker and both end", () => {
  expect(
    check(...run("1", { start: 1, end: 8 }), ...run("1", { start: 5, end: 9, worker: "w2" }), dead(10, "w1")),
  ).toMatchObject({ doubled: 1, reclaimedAfterMs: [] });
});

test("the demo audit reports a start above a limit, and frees a slot at the moment its task ends", () => {
  const at = (task: string, start: number, end?: number): [number, Entry][] =>
    run(task, { start, ...(end === undefined ? {} : { end }), limits: ["gateway"] });
  expect(check(set(0, "gateway", 1), ...at("1", 1, 3), ...at("2", 3, 4))).toMatchObject({
    overLimit: 0,
  });
  expect(check(set(0, "gateway", 1), ...at("1", 1, 3), ...at("2", 2, 4))).toMatchObject({
    overLimit: 1,
    findings: ["mail 2 began as number 2 of 1 in gateway"],
    peaks: [{ limit: "gateway", slots: 1, peak: 1 }],
  });
});

test("the demo audit counts each key of a limit separately", () => {
  const of = (task: string, tenant: string): [number, Entry][] =>
    run(task, { start: 1, end: 9, limits: [`tenant/${tenant}`] });
  const limit = set(0, "tenant", 2);
  const four = [...of("1", "a"), ...of("2", "a"), ...of("3", "b"), ...of("4", "b")];
  expect(check(limit, ...four)).toMatchObject({
    overLimit: 0,
    peaks: [{ limit: "tenant", slots: 2, peak: 2 }],
  });
  expect(check(limit, ...four, ...of("5", "b"))).toMatchObject({ overLimit: 1 });
});

test("the demo audit counts the slot of a dead worker until its death is recorded", () => {
  const limit = set(0, "gateway", 1);
  const victim = run("1", { start: 1, limits: ["gateway"] });
  const next = (start: number): [number, Entry][] => run("2", { start, end: 99, limits: ["gateway"], worker: "w2" });
  expect(check(limit, ...victim, dead(10, "w1"), ...next(9))).toMatchObject({ overLimit: 1 });
  expect(check(limit, ...victim, dead(10, "w1"), ...next(11))).toMatchObject({ overLimit: 0 });
});

/** `size` tasks that run from `start` on. */
const crowd = (name: string, size: number, start: number, end: number): [number, Entry][] =>
  Array.from({ length: size }, (_, i) =>
    run(`${name}${i}`, { start: start + i / 100, end, limits: ["gateway"] }),
  ).flat();

test("the demo audit allows a raised limit from the moment of the request", () => {
  expect(
    check(set(0, "gateway", 1), asked(5, "gateway", 3), ...crowd("r", 3, 6, 9), set(8, "gateway", 3)),
  ).toMatchObject({ overLimit: 0 });
});

test("the demo audit applies a lowered limit once the call returns, and lets running tasks finish", () => {
  const before = [set(0, "gateway", 4), ...crowd("old", 4, 1, 50), asked(5, "gateway", 2)];
  expect(check(...before, ...crowd("new", 2, 60, 99), set(7, "gateway", 2))).toMatchObject({
    overLimit: 0,
    peaks: [
      { limit: "gateway", slots: 4, peak: 4 },
      { limit: "gateway", slots: 2, peak: 2 },
    ],
  });
  expect(check(...before, ...crowd("new", 1, 40, 99), set(7, "gateway", 2))).toMatchObject({
    overLimit: 1,
  });
  const between = [set(0, "gateway", 4), asked(5, "gateway", 2), ...crowd("mid", 4, 6, 50)];
  expect(check(...between, set(7, "gateway", 2))).toMatchObject({ overLimit: 0 });
});

test("the demo audit excuses only late starts that could have been claimed before a limit was lowered", () => {
  // 3 of 4 ran when the limit fell to 2: one more may already have been claimed, but not two.
  const before = [set(0, "gateway", 4), ...crowd("old", 3, 1, 50), set(7, "gateway", 2)];
  expect(check(...before, ...crowd("late", 1, 8, 50))).toMatchObject({ overLimit: 0 });
  expect(check(...before, ...crowd("late", 2, 8, 50))).toMatchObject({ overLimit: 1 });
});

test("the demo audit accepts tasks of an order key in sequence, and a rerun after a crash", () => {
  expect(
    check(
      ...run("1", inA(0, { start: 1, end: 2 })),
      ...run("2", inA(1, { start: 3, worker: "w2" })),
      dead(5, "w2"),
      ...run("2", inA(1, { start: 6, end: 7 })),
      ...run("3", inA(2, { start: 7, end: 8 })),
    ),
  ).toMatchObject({ outOfOrder: 0, orderKeys: 1 });
});

test.each([
  ["a task beside the previous one", [inA(0, { start: 1, end: 4 }), inA(1, { start: 3, end: 5 })]],
  ["a task beside its own rerun", [inA(0, { start: 1 }), inA(0, { start: 3, end: 5 })]],
  ["a task before its predecessor", [inA(1, { start: 1, end: 2 }), inA(2, { start: 3, end: 5 })]],
  ["a task after an unfinished predecessor", [inA(0, { start: 1, left: 2 }), inA(1, { start: 3, end: 5 })]],
  ["a task that already ended", [inA(0, { start: 1, end: 2 }), inA(0, { start: 3, end: 5 })]],
] as const)("the demo audit reports %s as out of order", (_, runs) => {
  expect(check(...runs.flatMap((about, i) => run(String(i), about)))).toMatchObject({
    outOfOrder: 1,
  });
});

test("the demo audit imports only its own files, so it sees only the log", () => {
  const parts = ["audit", "runs", "sweep"].map((name) => `examples/demo/${name}.ts`);
  const imports = parts.flatMap((part) => importsOf(part)).map(({ from }) => from);
  expect(imports.filter((from) => !parts.includes(from))).toEqual([]);
});
