import { afterEach, describe, expect, test } from "vitest";
import { storable } from "../../../src/core/json.js";
import { observe, wanted } from "../schedules/schedule.js";
import { pruneBesideStart, startBesidePrune } from "./graph-schedules.js";
import { compile, JsonText, Play, ref, type Ending, type InHand, type Nodes } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const types = { a: {}, b: {}, c: {}, d: {}, e: {} };
const open = async (): Promise<void> => void (play = await Play.open(types));

/** How every task ends, by its type: a list of types that fail. */
const failing =
  (...failed: string[]) =>
  ({ type }: InHand): Ending =>
    failed.includes(type) ? { fail: `no ${type}` } : { result: type };
const startedTypes = (): string[] => play.started.map((t) => t.type);

test("a chain runs in order, and each node gets the results of the one before", async () => {
  await open();
  const run = await play.run(
    {
      one: ["task", { type: "a", input: { region: ref("input", "region") } }],
      two: ["task", { type: "b", after: ["one"], input: { got: ref("one", "list", "1"), all: ref("one") } }],
      three: ["task", { type: "c", after: ["two"], input: [ref("two"), ref("one", "nowhere"), 'a "$" {'] }],
    },
    { region: "eu" },
  );
  await play.drain((t) => ({ result: t.type === "a" ? { list: [1, { x: "é\n" }] } : t.type }));
  expect(play.started.map((t) => [t.type, t.input])).toEqual([
    ["a", { region: "eu" }],
    ["b", { got: { x: "é\n" }, all: { list: [1, { x: "é\n" }] } }],
    ["c", ["b", null, 'a "$" {']],
  ]);
  expect(await play.state(run)).toBe("succeeded");
  expect(await play.result(run)).toEqual({ three: "c" });
});

test("a step that settles a node claims its successor", async () => {
  await open();
  await play.run({ one: ["task", { type: "a" }], two: ["task", { type: "b", after: ["one"] }] });
  const [one] = await play.claim(1);
  expect((await play.step(1, [[one!, null]])).map((t) => t.type)).toEqual(["b"]);
  await play.drain();
});

const diamond: Nodes = {
  top: ["task", { type: "a" }],
  left: ["task", { type: "b", after: ["top"] }],
  right: ["task", { type: "c", after: ["top"] }],
  join: ["task", { type: "d", after: ["left", "right"], input: [ref("left"), ref("right")] }],
};

test("a node after several branches starts once, after the last of them", async () => {
  await open();
  const run = await play.run(diamond);
  await play.settle((await play.claim())[0]!, { result: 1 });
  const [left, right] = await play.claim();
  await play.settle(left!, { result: "l" });
  expect(await play.claim()).toEqual([]);
  await play.settle(right!, { result: "r" });
  expect((await play.claim()).map((t) => t.input)).toEqual([["l", "r"]]);
  await play.drain();
  expect(await play.state(run)).toBe("succeeded");
});

test("a node after two branches starts once if one settle ends both", async () => {
  await open();
  await play.run(diamond);
  await play.settle((await play.claim())[0]!, { result: 1 });
  const both = await play.claim();
  expect(
    (
      await play.step(
        9,
        both.map((t) => [t, t.type]),
      )
    ).map((t) => t.type),
  ).toEqual(["d"]);
  await play.drain();
});

test("a node that depends on a failed node is skipped, and the run fails", async () => {
  await open();
  const run = await play.run(diamond);
  await play.drain(failing("b"));
  expect(await play.nodes(run)).toEqual({
    top: "succeeded",
    left: "failed",
    right: "succeeded",
    join: "skipped",
  });
  expect(await play.state(run)).toBe("failed");
});

test("a node skipped because of a failure does not satisfy the nodes after it", async () => {
  await open();
  const run = await play.run({
    bad: ["task", { type: "a" }],
    good: ["task", { type: "b" }],
    needsBad: ["task", { type: "c", after: ["bad"] }],
    last: ["task", { type: "d", after: ["needsBad", "good"] }],
  });
  await play.drain(failing("a"));
  expect((await play.nodes(run))["last"]).toBe("skipped");
});

const condition: Nodes = {
  look: ["task", { type: "a" }],
  big: ["when", { after: ["look"], ref: ref("look", "n"), is: "above", value: 10 }],
  yes: ["task", { type: "b", after: [{ node: "big", on: "then" }] }],
  no: ["task", { type: "c", after: [{ node: "big", on: "else" }] }],
  after: ["task", { type: "d", after: ["yes", "no"], input: [ref("yes"), ref("no")] }],
};

test.each([
  [11, "b", ["b", null]],
  [10, "c", [null, "c"]],
  ["text", "c", [null, "c"]],
])("a condition on %j starts one branch, and the node after both branches runs", async (n, type, got) => {
  await open();
  const run = await play.run(condition);
  await play.drain((t) => ({ result: t.type === "a" ? { n } : t.type }));
  expect(startedTypes()).toEqual(["a", type, "d"]);
  expect(play.started.at(-1)!.input).toEqual(got);
  expect(await play.state(run)).toBe("succeeded");
});

test("a node in a taken branch is skipped if all its predecessors were skipped, as outside a branch", async () => {
  await open();
  const run = await play.run({
    no: ["when", { ref: ref("input"), is: "exists" }],
    left: ["task", { type: "a", after: [{ node: "no", on: "then" }] }],
    yes: ["when", { ref: ref("input"), is: "differs", value: 1 }],
    outside: ["task", { type: "b", after: ["left"], input: ref("left") }],
    inside: ["task", { type: "c", after: [{ node: "yes", on: "then" }, "left"], input: ref("left") }],
    beside: ["task", { type: "d", after: [{ node: "yes", on: "then" }] }],
  });
  await play.drain();
  expect(await play.nodes(run)).toEqual({
    no: "succeeded",
    left: "skipped",
    yes: "succeeded",
    outside: "skipped",
    inside: "skipped",
    beside: "succeeded",
  });
  expect(await play.state(run)).toBe("succeeded");
});

test("references are rendered completely, whatever their value and however many there are", async () => {
  await open();
  const run = await play.run(
    {
      one: ["task", { type: "a" }],
      two: ["task", { type: "b", input: ref("one"), after: ["one"] }],
      three: [
        "task",
        {
          type: "c",
          after: ["one", "two"],
          input: [ref("one"), ref("two", "x"), ref("input", "k")],
        },
      ],
      four: ["task", { type: "d", after: ["three"], input: { only: ref("input", "k", "0") } }],
    },
    { k: ["é"] },
  );
  await play.drain((t) => ({ result: t.type === "a" ? undefined : { x: t.type } }));
  expect(play.started.map((t) => t.input)).toEqual([null, null, [null, "b", ["é"]], { only: "é" }]);
  expect(await play.state(run)).toBe("succeeded");
});

test.each([
  ["truthy", undefined, [1, "x", {}, [], true], [0, -0, "", null, false, undefined]],
  ["exists", undefined, [0, "", false, {}], [null, undefined]],
  ["equals", { a: [1, 2] }, [{ a: [1, 2] }], [{ a: [2, 1] }, null, "x"]],
  ["differs", "x", ["y", null, 1], ["x"]],
  ["above", 1.5, [2, 1e3], [1.5, 1, "2", null]],
  ["below", 1.5, [1, -1], [1.5, 2, "1", null]],
] as const)("the condition %s %j selects the right branch", async (is, value, holds, fails) => {
  await open();
  const nodes: Nodes = { when: ["when", { ref: ref("input", "x"), is, value }] };
  const graph = await play.declare(nodes);
  const runs = await play.start(graph, ...[...holds, ...fails].map((x) => ({ x })));
  const seen = [];
  for (const run of runs) seen.push(((await play.result(run)) as { when: boolean }).when);
  expect(seen).toEqual([...holds.map(() => true), ...fails.map(() => false)]);
});

const caught = (recovers: boolean): Nodes => ({
  ship: ["task", { type: "a" }],
  done: ["task", { type: "b", after: ["ship"] }],
  refund: [
    "task",
    {
      type: "c",
      after: [{ node: "ship", on: "failure", recovers }],
      input: { why: ref("ship", "error", "message") },
    },
  ],
  always: ["task", { type: "d", after: [{ node: "done", on: "end" }] }],
});

test("a branch for a failure runs only after the failure, and the run still fails", async () => {
  await open();
  const [good, bad] = await play.start(await play.declare(caught(false)), 1, 2);
  const ships = await play.claim();
  await play.settle(ships[0]!, { result: 1 });
  await play.settle(ships[1]!, { fail: "no carrier" });
  await play.drain();
  expect(startedTypes().toSorted()).toEqual(["a", "a", "b", "c", "d", "d"]);
  expect(play.started.find((t) => t.type === "c")!.input).toEqual({ why: "no carrier" });
  expect([await play.state(good!), await play.state(bad!)]).toEqual(["succeeded", "failed"]);
});

test("a branch that recovers lets the run succeed, unless the branch fails itself", async () => {
  await open();
  const [kept, lost] = await play.start(await play.declare(caught(true)), 1, 2);
  for (const ship of await play.claim()) await play.settle(ship, { fail: "no" });
  const refunds = (await play.claim()).filter((t) => t.type === "c");
  await play.settle(refunds[0]!, { result: 1 });
  await play.settle(refunds[1]!, { fail: "no money" });
  await play.drain();
  expect([await play.state(kept!), await play.state(lost!)]).toEqual(["succeeded", "failed"]);
});

/** What a worker writes of a result that is too large. */
const tooLarge = new JsonText(storable("x".repeat(5_000), 1_000));

test("an input that is too large and a truncated result fail their node with a reason", async () => {
  await open();
  const graph = await play.declare({
    make: ["task", { type: "a" }],
    use: ["task", { type: "b", after: ["make"], input: [ref("make"), ref("make")] }],
  });
  const [large, cut] = await play.start(graph, 1, 2);
  const [first, second] = await play.claim();
  await play.settle(first!, { result: "x".repeat(600_000) });
  await play.settle(second!, { result: tooLarge });
  expect((await play.errorOf(large!, "use"))?.code).toBe("input_too_large");
  expect((await play.errorOf(cut!, "use"))?.code).toBe("result_truncated");
  expect([await play.state(large!), await play.state(cut!)]).toEqual(["failed", "failed"]);
});

test("a result with the same fields as the note of a truncated result is an ordinary result", async () => {
  await open();
  const items = { type: "b", items: ref("make", "list"), input: ref("item"), window: 2 };
  const run = await play.run({
    make: ["task", { type: "a" }],
    use: ["task", { type: "c", after: ["make"], input: ref("make", "note") }],
    both: ["task", { type: "d", after: ["make"], input: [ref("make"), ref("input")] }],
    each: ["each", { ...items, after: ["make"] }],
    last: ["task", { type: "e", after: ["each"], input: ref("each", "results") }],
  });
  const note = { truncated: true, bytes: 5, preview: "x" };
  const own = { ...note, note, list: [1, 2] };
  await play.drain((t) => ({ result: t.type === "a" ? own : note }));
  expect(await play.state(run)).toBe("succeeded");
  expect(play.started.filter((t) => "cde".includes(t.type)).map((t) => t.input)).toEqual([
    note,
    [own, null],
    [note, note],
  ]);
});

test("one invalid input among many of one settle fails only its own node", async () => {
  await open();
  const graph = await play.declare({
    make: ["task", { type: "a" }],
    use: ["task", { type: "b", after: ["make"], input: ref("make") }],
  });
  const runs = await play.start(graph, 1, 2, 3);
  const made = await play.claim();
  await play.step(
    0,
    made.map((t, i) => [t, i === 1 ? tooLarge : i]),
  );
  await play.drain();
  const states = [];
  for (const run of runs) states.push(await play.state(run));
  expect(states).toEqual(["succeeded", "failed", "succeeded"]);
});

test("a retry of a task does not end its node", async () => {
  await open();
  const run = await play.run({
    one: ["task", { type: "a" }],
    two: ["task", { type: "b", after: ["one"] }],
  });
  await play.settle((await play.claim())[0]!, "retry");
  expect(await play.nodes(run)).toEqual({ one: "running", two: "pending" });
  await play.drain();
  expect(startedTypes()).toEqual(["a", "a", "b"]);
});

test("a cancelled task ends its node, and the run is cancelled if nothing failed", async () => {
  await open();
  const run = await play.run(diamond);
  await play.settle((await play.claim())[0]!, { result: 1 });
  const [left] = await play.claim(1);
  await play.settle(left!, "cancel");
  await play.drain();
  expect(await play.state(run)).toBe("cancelled");
});

test("a run keeps the graph it was started with", async () => {
  await open();
  const old = await play.run({
    one: ["task", { type: "a" }],
    two: ["task", { type: "b", after: ["one"] }],
  });
  await play.run({ one: ["task", { type: "a" }], two: ["task", { type: "c", after: ["one"] }] });
  await play.drain();
  expect(startedTypes().toSorted()).toEqual(["a", "a", "b", "c"]);
  expect((await play.members(old)).length).toBe(2);
});

test("the result of a run is what its definition asks for", async () => {
  await open();
  const graph = await play.declare(
    { one: ["task", { type: "a" }] },
    {
      parts: ['{"x":', "}"],
      nodes: [1],
      paths: [["deep"]],
    },
  );
  const [run] = await play.start(graph);
  await play.drain(() => ({ result: { deep: 7 } }));
  expect(await play.result(run!)).toEqual({ x: 7 });
});

const chained = (n: number, before: (i: number) => number[]): Nodes =>
  Object.fromEntries(
    Array.from({ length: n }, (_, i) => [`n${i}`, ["task", { type: "a", after: before(i).map((j) => `n${j}`) }]]),
  );

// This would take minutes if the cost grew faster than nodes and dependencies.
test("a chain of 500 nodes is declared quickly, also if each node depends on all before it", async () => {
  await open();
  await play.declare(chained(500, (i) => (i === 499 ? [] : [i + 1])));
  const all = await play.declare(chained(200, (i) => Array.from({ length: i }, (_, j) => j)));
  const behind = await play.db.value(
    "select array_agg(cardinality(successors) order by node) from sluice.workflow_step where graph = $1",
    [all],
  );
  expect(behind).toEqual(Array.from({ length: 200 }, (_, i) => 199 - i));
});

test("nodes in a cycle are named, and no others", async () => {
  await open();
  const circle: Nodes = {
    first: ["task", { type: "a" }],
    x: ["task", { type: "a", after: ["first", "z"] }],
    y: ["task", { type: "a", after: ["x"] }],
    z: ["task", { type: "a", after: ["y"] }],
    behind: ["task", { type: "a", after: ["z", "first"] }],
  };
  await expect(play.declare(circle)).rejects.toThrow(/in a cycle: '[xyz]', '[xyz]', '[xyz]'$/);
  const itself: Nodes = { one: ["task", { type: "a", after: ["one"] }] };
  await expect(play.declare(itself)).rejects.toThrow("in a cycle: 'one'");
  await expect(play.declare(chained(501, () => []))).rejects.toThrow("1 to 500 nodes");
});

describe("a malformed graph is refused", () => {
  const [good] = compile({ one: ["task", { type: "a" }] });
  const [each] = compile({ one: ["each", { type: "a", items: [1], window: 1 }] });
  const template = { parts: [""], nodes: [1], paths: [] };
  test.each<[string, unknown]>([
    ["no list", {}],
    ["no nodes", []],
    ["no name", [{ ...good, name: null }]],
    ["a name twice", [good, good]],
    ["an unknown kind", [{ ...good, kind: "loop" }]],
    ["a task without an input", [{ ...good, input: undefined }]],
    ["a task without a type", [{ ...good, type: undefined }]],
    ["a template with a part too few", [{ ...good, input: template }]],
    ["a template that is none", [{ ...good, input: { parts: {} } }]],
    ["a reference to nobody", [{ ...good, input: { parts: ["", ""], nodes: [2], paths: [[]] } }]],
    ["an each without items", [{ ...each, items: undefined }]],
    ["an each with another policy", [{ ...each, onError: "ignore" }]],
    ["a window of 0", [{ ...each, window: 0 }]],
    ["a window of 1.5", [{ ...each, window: 1.5 }]],
    ["a when that asks nothing", [{ name: "w", kind: "when", ref: good!.input, is: "like" }]],
    ["a sleep without a time", [{ name: "s", kind: "sleep" }]],
    ["a sleep of less than nothing", [{ name: "s", kind: "sleep", ms: -1 }]],
    ["a sleep of centuries", [{ name: "s", kind: "sleep", ms: 1e14 }]],
    ["no event to wait for", [{ name: "v", kind: "waitFor" }]],
    ["after a node that is not there", [{ ...good, after: [{ node: 7, on: "success" }] }]],
    ["after a text", [{ ...good, after: [{ node: "one" }] }]],
    ["after no list", [{ ...good, after: {} }]],
    ["on another word", [good, { ...good, name: "b", after: [{ node: 1, on: "never" }] }]],
    ["a branch of a task", [good, { ...good, name: "b", after: [{ node: 1, on: "then" }] }]],
  ])("a graph is refused: %s", async (_, steps) => {
    await open();
    const declared = play.db.value("select sluice.workflow_declare('w', 'd', '{}', $1)", [JSON.stringify(steps)]);
    await expect(declared).rejects.toMatchObject({ constraint: "invalid_workflow" });
  });

  test("a graph whose result refers to no node is refused", async () => {
    await open();
    const result = { parts: ["", ""], nodes: [2], paths: [[]] };
    const declared = play.declare({ one: ["task", { type: "a" }] }, result);
    await expect(declared).rejects.toMatchObject({ constraint: "invalid_workflow" });
  });
});

describe("unused graphs", () => {
  const WEEK_MS = 7 * 24 * 3_600_000;
  const prune = (max = 100): Promise<number> =>
    play.db.value("select sluice.workflow_prune_graphs($1, $2)", [WEEK_MS, max]);
  const graphs = (): Promise<number[]> =>
    play.db.value("select coalesce(array_agg(id order by id), '{}') from sluice.workflow_graph");
  const only: Nodes = { one: ["task", { type: "a" }] };

  test("unused graphs are deleted in pieces, except the latest of a name, graphs of runs and young ones", async () => {
    await open();
    const old: number[] = [];
    for (const name of ["flow", "flow", "flow", "flow", "other"]) old.push(await play.declare(only, undefined, name));
    await play.start(old[1]!);
    expect(await prune()).toBe(0);
    await play.scene.moveClock(WEEK_MS + 1_000);
    const young = await play.declare(only);
    await play.declare(only);
    expect([await prune(2), await prune(2), await prune(2)]).toEqual([2, 1, 0]);
    expect(await graphs()).toEqual([old[1], old[4], young, young + 1]);
    expect(await play.db.value("select array_agg(graph order by graph) from sluice.workflow_step")).toEqual(
      await graphs(),
    );
    play.worker = await play.db.register(play.worker.streams);
    await play.drain();
  });

  test("a graph is kept for a start that is not committed yet", async () => {
    await open();
    expect(await observe(startBesidePrune)).toEqual(wanted(startBesidePrune));
  });

  test("a start beside the deletion of its graph reports that the graph does not exist", async () => {
    await open();
    expect(await observe(pruneBesideStart)).toEqual(wanted(pruneBesideStart));
  });
});
