// A flow is a run of a workflow. In these stories: first, then items (two of them), then last.
import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import type { FlowNode, Heard, Line } from "../../../fault/audit/line.js";
import { change, dead, disturbance, found, foundIn, line, Tale, terms } from "./story.js";

type Policy = FlowNode["policy"];
type State = "running" | "succeeded" | "failed" | "cancelled";

const node = (name: string, tags: readonly string[], about: Partial<FlowNode> = {}): FlowNode => ({
  name,
  after: [],
  on: "success",
  policy: "task",
  tags,
  chained: false,
  ...about,
});

const flowLine = (at: number, kind: "flowAcknowledged" | "flowWithdrawn", flow = "f"): Line =>
  line(at, "producer", { kind, flow });
const cancelling = (at: number): Line => line(at, "operator", { kind: "flowCancelling", flow: "f" });
const retrying = (at: number): Line => line(at, "operator", { kind: "flowRetrying", flow: "f" });
const notRetried = (at: number): Line => line(at, "operator", { kind: "flowNotRetried", flow: "f" });
const atRest = (state: State, flow = "f"): Line => line(9_000, "harness", { kind: "flowAtRest", flow, state });

function fan(policy: Policy, about: Partial<FlowNode> = {}) {
  const nodes = [
    node("first", ["f.first"]),
    node("items", ["f.0", "f.1"], { policy, after: ["first"] }),
    node("last", ["f.last"], { after: ["items"], ...about }),
  ];
  const [first, a, b, last] = ["f.first", "f.0", "f.1", "f.last"].map((tag) => new Tale(tag)) as [
    Tale,
    Tale,
    Tale,
    Tale,
  ];
  const parts = [first, a, b, last].map((tale) => tale.offered(0));
  const offered = line(0, "producer", { kind: "flowOffered", flow: "f", parent: null, nodes });
  return { first, a, b, last, begun: [offered, ...parts, flowLine(1, "flowAcknowledged")] };
}

/** Ran and succeeded. */
const well = (tale: Tale, from: number, to: number, heard?: Heard): Line[] => {
  const [start, end] = tale.ran(from, to) as [Line, Line];
  return [heard === undefined ? start : ({ ...start, heard } as Line), end, outcome(tale, to + 1)];
};
const failed = (tale: Tale, from: number, to: number): Line[] => [
  ...tale.ran(from, to, "thrown"),
  outcome(tale, to + 1, "failed"),
];
const outcome = (tale: Tale, at: number, state: "succeeded" | "failed" | "cancelled" = "succeeded") =>
  ({ ...tale.accepted(at, state), tag: tale.claims.tag }) as Line;
/** The same place of the flow, as another task. */
const another = (tale: Tale): Tale => {
  const other = new Tale(tale.claims.tag);
  return Object.assign(other, { task: `${tale.task}'` });
};

test("the audit accepts a flow whose nodes run in order and receive the recorded results", () => {
  const { first, a, b, last, begun } = fan("finish");
  const heard = { items: ["1", "1"], first: "1" };
  const rest = [...well(a, 30, 40), ...well(b, 30, 50), ...well(last, 60, 70, heard)];
  const report = audit([...begun, ...well(first, 10, 20), ...rest, atRest("succeeded")], terms);
  expect(foundIn(report)).toEqual({});
  expect(report.flows).toMatchObject({ offered: 1, acknowledged: 1, succeeded: 1, parts: 4 });
});

test("the audit finds an item or a later node without an outcome", () => {
  const { first, a, b, last, begun } = fan("collect");
  const over = [...begun, ...well(first, 10, 20), ...well(a, 30, 40), atRest("succeeded")];
  expect(found(over)).toEqual({ lostItems: 1 });
  expect(found(over, well(b, 30, 40))).toEqual({ lostItems: 1 });
  expect(found(over, well(b, 30, 40), well(last, 50, 60))).toEqual({});
});

test("the audit finds an acknowledged flow that is missing or has not ended", () => {
  const { first, begun } = fan("collect");
  expect(found(begun)).toEqual({ lostItems: 1 });
  expect(found(begun, well(first, 10, 20), atRest("running"))).toEqual({ notEnded: 1 });
});

test("the audit finds a withdrawn flow that exists, and a flow that exists twice", () => {
  const { first, begun } = fan("collect");
  const withdrawn = [...begun.slice(0, -1), flowLine(1, "flowWithdrawn")];
  expect(found(withdrawn)).toEqual({});
  expect(found(withdrawn, atRest("succeeded"))).toEqual({ neverEnqueued: 1 });
  const lines = [...begun, ...failed(first, 10, 20)];
  expect(found(lines, atRest("failed"))).toEqual({});
  expect(found(lines, atRest("failed"), atRest("failed"))).toEqual({ neverEnqueued: 1 });
});

test("the audit finds a node that starts before its predecessors are recorded as ended", () => {
  const { first, a, b, last, begun } = fan("finish");
  const over = [...begun, ...well(first, 10, 20), ...well(a, 30, 40), atRest("succeeded")];
  expect(found(over, well(b, 30, 100), well(last, 101, 110))).toEqual({});
  expect(found(over, well(b, 30, 100), well(last, 100, 110))).toEqual({ startedTooSoon: 1 });
  expect(found(over, well(b, 20, 50), well(last, 60, 70))).toEqual({ startedTooSoon: 1 });
});

test("the audit finds a link of a sequence that starts before its predecessor has ended", () => {
  const { first, a, b, last, begun } = fan("finish", { chained: true });
  const over = [...begun, ...well(first, 10, 20), ...well(a, 30, 40), atRest("succeeded")];
  expect(found(over, well(b, 30, 100), well(last, 100, 110))).toEqual({ outOfSequence: 1 });
});

test("the audit finds a node that runs after a failure, unless it runs after the end of a node", () => {
  const steps = ({ first, a, b, last, begun }: ReturnType<typeof fan>): Line[] => [
    ...begun,
    ...well(first, 10, 20),
    ...well(a, 30, 40),
    ...failed(b, 30, 40),
    ...well(last, 50, 60),
    atRest("failed"),
  ];
  expect(found(steps(fan("finish")))).toEqual({ startedTooSoon: 1, advancedWithoutCause: 1 });
  expect(found(steps(fan("finish", { on: "end" })))).toEqual({});
});

test("the audit expects a node after the end of a skipped node to run", () => {
  const { first, last, begun } = fan("finish", { on: "end" });
  const lines = [...begun, ...failed(first, 10, 20), atRest("failed")];
  expect(found(lines, well(last, 22, 30))).toEqual({});
  expect(found(lines, well(last, 15, 30))).toEqual({ startedTooSoon: 1 });
  expect(found(lines)).toEqual({ lostItems: 1 });
});

test("the audit expects collect to treat a failed item as null", () => {
  const steps = (state: State, told: readonly (string | null)[]): Line[] => {
    const { first, a, b, last, begun } = fan("collect");
    const items = [...well(a, 30, 40), ...failed(b, 30, 40)];
    const rest = [...items, ...well(last, 50, 60, { items: told }), atRest(state)];
    return [...begun, ...well(first, 10, 20), ...rest];
  };
  expect(found(steps("succeeded", ["1", null]))).toEqual({});
  expect(found(steps("failed", ["1", null]))).toEqual({ wrongVerdict: 1 });
  expect(found(steps("succeeded", [null, "1"]))).toEqual({ heardWrong: 1 });
  expect(found(steps("succeeded", ["1"]))).toEqual({ heardWrong: 1 });
});

test("the audit allows items to be cancelled after a failure only with failFast", () => {
  const steps = (policy: Policy, cancelledAt: number): Line[] => {
    const { first, a, b, begun } = fan(policy);
    const items = [...failed(a, 30, 40), outcome(b, cancelledAt, "cancelled")];
    return [...begun, ...well(first, 10, 20), ...items, atRest("failed")];
  };
  expect(found(steps("failFast", 42))).toEqual({});
  expect(found(steps("failFast", 35))).toEqual({ cancelledWithoutCause: 1 });
  expect(found(steps("finish", 42))).toEqual({ cancelledWithoutCause: 1 });
});

test("the audit allows another item to fail first after a retry", () => {
  const { first, a, b, begun } = fan("failFast");
  const lines = [...begun, ...well(first, 10, 20), ...failed(a, 30, 40), outcome(b, 42, "cancelled")];
  const again = [b.cancelling(110), outcome(b, 120, "cancelled"), atRest("cancelled")];
  expect(found(lines, retrying(100), again, outcome(a, 130, "cancelled"))).toEqual({});
  const alone = [outcome(a, 115, "cancelled"), ...again];
  expect(found(lines, retrying(100), alone)).toEqual({ cancelledWithoutCause: 1 });
});

test("the audit finds an item or a node that was created twice", () => {
  const { first, a, b, last, begun } = fan("finish");
  const over = [...begun, ...well(first, 10, 20), ...well(a, 30, 40), ...well(b, 30, 40)];
  const all = [...over, ...well(last, 50, 60), atRest("succeeded")];
  expect(found(all)).toEqual({});
  expect(found(all, well(another(last), 70, 80))).toEqual({ advancedTwice: 1 });
  expect(found(all, well(another(a), 45, 48))).toEqual({ itemTwice: 1 });
});

test("the audit allows a cancelled flow to omit a node, but not a part of a node", () => {
  const { first, a, b, begun } = fan("finish");
  const lines = [...begun, ...well(first, 10, 20), cancelling(25), atRest("cancelled")];
  expect(found(lines)).toEqual({});
  expect(found(lines, outcome(a, 30, "cancelled"))).toEqual({ lostItems: 1 });
  expect(found(lines, outcome(a, 30, "cancelled"), outcome(b, 31, "cancelled"))).toEqual({});
  const unasked = [...begun, ...well(first, 10, 20), atRest("cancelled")];
  expect(found(unasked)).toEqual({ wrongVerdict: 1 });
});

test("the audit allows a retry of a flow to rerun failed items and to create later nodes again", () => {
  const { first, a, b, last, begun } = fan("finish", { on: "end" });
  const lines = [...begun, ...well(first, 10, 20), ...well(a, 30, 40), ...failed(b, 30, 40)];
  const again = [...well(last, 50, 60), ...well(b, 110, 120), ...well(another(last), 130, 140)];
  const rest = [...lines, ...again, atRest("succeeded")];
  expect(found(rest, retrying(100))).toEqual({});
  const refused = found(rest, retrying(100), notRetried(101));
  expect(refused).toEqual({ advancedTwice: 1, acceptedTwice: 1, ranTwiceWithoutCause: 1 });
});

test("the audit finds a succeeded item that runs again with a retry of its flow", () => {
  const { first, a, b, last, begun } = fan("finish");
  const lines = [...begun, ...well(first, 10, 20), ...well(a, 30, 40), ...failed(b, 30, 40)];
  const again = [...well(b, 110, 120), ...well(last, 130, 140), atRest("succeeded")];
  expect(found(lines, retrying(100), again, a.ran(110, 115))).toEqual({ ranTwiceWithoutCause: 1 });
});

test("the audit does not count a retried item as ended", () => {
  const { first, a, b, last, begun } = fan("collect");
  const lines = [...begun, ...well(first, 10, 20), ...well(a, 30, 40), ...failed(b, 30, 40)];
  const again = [b.retrying(45), ...well(b, 50, 100), atRest("succeeded")];
  expect(found(lines, again, well(last, 60, 70))).toEqual({ startedTooSoon: 1 });
  expect(found(lines, again, well(last, 110, 120))).toEqual({});
});

test("the audit finds more items at once than the window allowed at that time", () => {
  const slot = "window1/f-items";
  const [a, b] = [new Tale("w/1", { limits: [slot] }), new Tale("w/2", { limits: [slot] })];
  const under = { ...terms, limits: { "window1/*": 1 } };
  const look = (...lines: Line[][]) => foundIn(audit(lines.flat(), under));
  const both = [...a.whole(1010, 1050), ...b.whole(1020, 1060)];
  expect(look(both)).toEqual({ aboveWindow: 1 });
  expect(look(both, change(100, 110, slot, 2))).toEqual({});
  expect(look(both, change(100, 110, "window1/other-items", 2))).toEqual({ aboveWindow: 1 });
  expect(look(both, change(100, 110, slot, 2), change(200, 210, slot, 1))).toEqual({
    aboveWindow: 1,
  });
});

/** A handler that fans out to two children. */
function map() {
  const nodes = [node("map", ["m.0", "m.1"], { policy: "collect" })];
  const [parent, a, b] = [new Tale("m"), new Tale("m.0"), new Tale("m.1")];
  const offered = line(0, "producer", { kind: "flowOffered", flow: "m", parent: "m", nodes });
  const begun = [offered, ...parent.enqueued(0), a.offered(0), b.offered(0)];
  return { parent, a, b, begun: [...begun, ...parent.ran(10, 20, "snoozed")] };
}

test("the audit expects a handler to continue after its items, with their results", () => {
  const steps = (at: number, told: readonly (string | null)[], state: State = "succeeded") => {
    const { parent, a, b, begun } = map();
    const [start, end] = parent.ran(at, at + 10) as [Line, Line];
    const resumed = [start, { ...end, heard: { map: told } } as Line, parent.accepted(at + 11)];
    return [...begun, ...well(a, 30, 40), ...failed(b, 30, 60), ...resumed, atRest(state, "m")];
  };
  expect(found(steps(70, ["1", null]))).toEqual({});
  expect(found(steps(70, ["1", "1"]))).toEqual({ heardWrong: 1 });
  expect(found(steps(45, ["1", null]))).toEqual({ startedTooSoon: 1 });
  expect(found(steps(70, ["1", null], "running"))).toEqual({ notEnded: 1 });
});

test("the audit expects the items of a failed handler to be cancelled, and none of a successful one to be missing", () => {
  const { parent, a, b, begun } = map();
  const gone = [outcome(a, 50, "cancelled"), outcome(b, 51, "cancelled"), atRest("cancelled", "m")];
  const fails = [...parent.ran(30, 40, "thrown"), parent.accepted(41, "failed")];
  expect(found(begun, fails, gone)).toEqual({});
  expect(found(begun, fails, gone.slice(1))).toEqual({ lostItems: 1 });
  const succeeds = [...parent.ran(60, 70), parent.accepted(71)];
  expect(found(begun, succeeds, well(a, 30, 40), atRest("succeeded", "m"))).toEqual({
    lostItems: 1,
  });
});

test("the audit counts zombies of a flow separately", () => {
  const { first, begun } = fan("finish");
  const w2 = { process: "w2" };
  const frozen = [...first.ran(10, 3020), ...disturbance(20, 3010), dead(4000)];
  const taken = [...first.ran(1200, 1210, "thrown", w2), outcome(first, 1211, "failed")];
  const report = audit([...begun, ...frozen, ...taken, atRest("failed")], terms);
  expect(foundIn(report)).toEqual({});
  expect(report.flows.zombieRuns).toBe(1);
});
