import { describe, expect, test } from "vitest";
import { readGraph } from "../../src/workflow/read.js";
import { caught, hostile } from "../core/caught.js";

const a = { name: "a", kind: "task", type: "t" };
const ref = (...steps: unknown[]): object => ({ $ref: steps });

/** A graph of these nodes, as if read from a file. */
const graph = (...nodes: unknown[]): object => ({ version: 1, name: "test", nodes });

test("readGraph fills in defaults and turns references into dependencies", () => {
  const read = readGraph(
    graph(
      { name: "b", kind: "task", type: "t", input: [ref("a", "x", 0)], after: [] },
      { ...a, queue: "q" },
      { name: "c", kind: "task", type: "t", after: ["a", { node: "b", on: "success" }] },
    ),
  );
  expect(read).toEqual({
    version: 1,
    name: "test",
    nodes: [
      {
        name: "b",
        kind: "task",
        type: "t",
        queue: "default",
        input: [{ $ref: ["a", "x", 0] }],
        after: ["a"],
      },
      { name: "a", kind: "task", type: "t", queue: "q", input: null, after: [] },
      { name: "c", kind: "task", type: "t", queue: "default", input: null, after: ["a", "b"] },
    ],
  });
});

test("readGraph accepts with_items and concurrency for items and window", () => {
  const said = { name: "e", kind: "each", type: "t", input: ref("item"), hold: false };
  const other = readGraph(graph(a, { ...said, with_items: ref("a"), concurrency: 3 }));
  const ours = readGraph(graph(a, { ...said, items: ref("a"), window: 3 }));
  expect(other).toEqual(ours);
  expect(ours.nodes[1]).toMatchObject({ items: ref("a"), window: 3, onError: "failFast" });
});

test("readGraph keeps the kind of a dependency if a reference names the same node", () => {
  const after = [{ node: "a", on: "failure", recover: true }];
  const { nodes } = readGraph(graph(a, { ...a, name: "b", after, input: ref("a", "error") }));
  expect(nodes[1]!.after).toEqual(after);
});

test("readGraph returns an immutable copy", () => {
  const data = graph({ ...a, input: { list: [1] } });
  const read = readGraph(data);
  expect(() => (read.nodes as unknown[]).push(1)).toThrow(TypeError);
  expect(() => Object.assign(read.nodes[0]!, { name: "b" })).toThrow(TypeError);
  (data as { nodes: { name: string }[] }).nodes[0]!.name = "b";
  expect(read.nodes[0]!.name).toBe("a");
});

describe("readGraph refuses as invalid_workflow", () => {
  const each = { name: "e", kind: "each", type: "t", items: [], window: 1 };
  const when = { name: "w", kind: "when", ref: ref("a") };
  const task = (more: object): object => ({ ...a, name: "b", ...more });

  test.each<[string, unknown, string]>([
    ["a list instead of an object", [], "workflow undefined: a graph must be an object"],
    ["null", null, "a graph must be an object"],
    ["an object that throws", hostile(), "threw"],
    ["another version", { ...graph(a), version: 2 }, "version must be 1, not 2"],
    ["a name that is not text", { ...graph(a), name: 5 }, "workflow name 5 is not allowed"],
    ["an unknown key", { ...graph(a), steps: [] }, 'workflow "test": unknown key "steps"'],
    ["nodes that are not a list", { ...graph(), nodes: {} }, "nodes must be a list"],
    ["no nodes", graph(), "it has no nodes"],
    ["a node that is not an object", graph("a"), "a node must be an object"],
    ["an unknown kind", graph({ ...a, kind: "loop" }), 'node "a": kind must be "task" or "each"'],
    ["an unknown key of a node", graph({ ...a, timeout: 1 }), 'unknown key "timeout"; task has'],
    ["a key of another kind", graph({ ...a, window: 1 }), 'unknown key "window"'],
    ["a duplicate name", graph(a, a), 'node "a": another node has the same name'],
    ["a reserved name", graph({ ...a, name: "item" }), "a node cannot be named"],
    ["no type", graph({ name: "a", kind: "task" }), "task name undefined is not allowed"],
    ["an after with an unknown node", graph(task({ after: ["x"] })), 'it comes after "x", which does not exist'],
    ["the same node twice in after", graph(a, task({ after: ["a", "a"] })), 'it comes after "a" twice'],
    ["an after that is not a list", graph(task({ after: "a" })), "after must be a list"],
    ["a number in after", graph(task({ after: [1] })), "after must contain names of nodes"],
    ["an after with an unknown key", graph(a, task({ after: [{ node: "a", in: 1 }] })), '"in" in after'],
    ["an after with an unknown condition", graph(a, task({ after: [{ node: "a", on: "x" }] })), 'on must be "s'],
    [
      "a branch of a node that is not a when",
      graph(a, task({ after: [{ node: "a", on: "then" }] })),
      '"a" is not a when',
    ],
    [
      "recover of a success",
      graph(a, task({ after: [{ node: "a", on: "success", recover: true }] })),
      "recover must be true or false, and needs on: failure",
    ],
    ["a node that depends on itself", graph(task({ after: ["b"] })), 'it waits for itself: "b" -> "b"'],
    [
      "a cycle",
      graph(
        a,
        { ...a, name: "x", after: ["a", "z"] },
        { ...a, name: "y", after: ["x"] },
        { ...a, name: "z", input: { deep: [ref("y")] } },
        { ...a, name: "behind", after: ["z"] },
      ),
      'it waits for itself: "x" -> "y" -> "z" -> "x"',
    ],
    ["a reference to an unknown node", graph(task({ input: ref("x") })), 'it comes after "x", which does not exist'],
    ["item outside an each", graph(task({ input: ref("item") })), "item exists only in the input"],
    ["index in the list of an each", graph({ ...each, items: ref("index") }), "index exists only"],
    ["a field of an each", graph(each, task({ input: ref("e", "rows") })), "an each has results"],
    ["the output of a when", graph(a, when, task({ input: ref("w") })), "a when has no output"],
    ["a reference that is not a list", graph(task({ input: { $ref: "a" } })), '"$ref" must be a list'],
    ["a reference to a number", graph(task({ input: ref(1) })), '"$ref" must be a list'],
    ["an empty reference", graph(task({ input: ref() })), '"$ref" must be a list'],
    ["a negative index in a reference", graph(a, task({ input: ref("a", -1) })), '"$ref" must be a list'],
    ["a reference with other keys", graph(task({ input: { $ref: ["input"], x: 1 } })), "no other keys"],
    ["a literal with other keys", graph(task({ input: { $literal: 1, x: 1 } })), "no other keys"],
    [
      "a reference with too many steps",
      graph(task({ input: ref("input", ...Array.from({ length: 64 }, () => "x")) })),
      "more than 64 steps",
    ],
    ["no items", graph({ ...each, items: undefined }), "items is missing"],
    ["items that are not a list", graph({ ...each, items: { a: 1 } }), "items must be a list"],
    ["literal items that are not a list", graph({ ...each, items: { $literal: 1 } }), "items must be a"],
    ["both items and with_items", graph({ ...each, with_items: [] }), "items and with_items mean the same"],
    ["a window of 0", graph({ ...each, window: 0 }), "window must be an integer from 1"],
    ["no window", graph({ ...each, window: undefined }), "window is missing"],
    ["an each with hold", graph({ ...each, hold: true }), "hold must be false: an each never holds slots"],
    ["an unknown condition", graph(a, { ...when, is: "like" }), 'is must be "truthy"'],
    ["a comparison without a value", graph(a, { ...when, is: "equals" }), "value must be given for equals"],
    ["a value without a comparison", graph(a, { ...when, value: 1 }), "value must be given for equals"],
    ["a comparison with text by above", graph(a, { ...when, is: "above", value: "1" }), "value must be a number"],
    ["a when without a ref", graph({ name: "w", kind: "when" }), "ref is missing"],
    ["a sleep without a time", graph({ name: "s", kind: "sleep" }), "either ms or until"],
    ["a sleep with both ms and until", graph({ name: "s", kind: "sleep", ms: 1, until: 1 }), "either ms or until"],
    ["a sleep until text that is not a time", graph({ name: "s", kind: "sleep", until: "now" }), "until must be ISO"],
    ["a sleep until an object", graph({ name: "s", kind: "sleep", until: {} }), "until must be ISO"],
    ["a result of an unknown node", { ...graph(a), result: ref("x") }, "its result: it refers to"],
    ["a result of an item", { ...graph(a), result: ref("item") }, "its result: item exists only"],
    ["a part that is not a list", graph({ ...a, part: "x" }), "part must be a list"],
    ["text that PostgreSQL cannot store", graph({ ...a, input: "\0" }), "a NUL character"],
    ["more than a megabyte", graph({ ...a, input: "x".repeat(1_048_577) }), "1048576 allowed"],
  ])("%s", (_, data, message) => {
    const error = caught(() => readGraph(data));
    expect(error.code).toBe("invalid_workflow");
    expect(error.message).toContain(message);
  });

  test("with the workflow and the node in the details of the error", () => {
    expect(caught(() => readGraph(graph(a, task({ after: ["x"] })))).details).toEqual({
      workflow: "test",
      node: "b",
    });
  });

  test("a cycle of 500 nodes and a graph of 501, but not a chain of 500", () => {
    const nodes = Array.from({ length: 500 }, (_, i) => ({
      ...a,
      name: `n${i}`,
      after: i === 499 ? [] : [`n${i + 1}`],
    }));
    expect(readGraph(graph(...nodes)).nodes).toHaveLength(500);
    const closed = [...nodes.slice(0, 499), { ...nodes[499]!, after: ["n0"] }];
    expect(caught(() => readGraph(graph(...closed))).message).toContain("it waits for itself");
    expect(caught(() => readGraph(graph(...nodes, a))).message).toContain("at most 500");
  });
});
