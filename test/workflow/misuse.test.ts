import { describe, expect, test } from "vitest";
import { z } from "zod";
import { task, type } from "../../src/client.js";
import type { Ref } from "../../src/workflow/ref.js";
import type { Node, Scope } from "../../src/workflow/scope.js";
import { workflow } from "../../src/workflow/workflow.js";
import { caught, hostile, loneHigh, nested } from "../core/caught.js";
import { listAccounts, report, syncAccount, tick } from "./tasks.js";

type Input = { region: string; list: string[]; n: number };
const input = { input: type<Input>() };

/** The error of a definition that does something wrong. */
function wrong(write: (w: Scope, input: Ref<Input>) => unknown): { code: string; message: string } {
  const { code, message, details } = caught(() => workflow("test", input, write));
  expect(details?.["workflow"]).toBe("test");
  return { code, message };
}

const ANY = "anything" as never;

describe("a workflow reference cannot be", () => {
  test.each<[string, (ref: never) => unknown, string]>([
    ["put into text", (ref) => `${String(ref)}!`, "used as text or as a number"],
    ["concatenated", (ref) => "a" + ref, "used as text or as a number"],
    ["calculated with", (ref) => Number(ref) + 1, "used as text or as a number"],
    ["compared by size", (ref) => ref > 5, "used as text or as a number"],
    ["compared as a number", (ref) => Object.is(+ref, 5), "used as text or as a number"],
    ["used as a key", (ref) => ({ a: 1 })[ref], "used as text or as a number"],
    ["iterated", (ref) => [...(ref as unknown[])], "iterated"],
    ["spread", (ref) => ({ ...(ref as object) }), "spread or listed"],
    ["listed", (ref) => Object.keys(ref), "spread or listed"],
    ["searched", (ref) => "a" in (ref as object), "searched for keys"],
    ["turned into JSON", (ref) => JSON.stringify({ ref }), "turned into JSON"],
    ["called", (ref) => (ref as { map(): void }).map(), "called"],
    ["changed", (ref) => ((ref as { a: 1 }).a = 1), "changed"],
    ["asked for its text", (ref) => (ref as Date).toString(), "turned into text"],
  ])("%s", (_, use, used) => {
    const { code, message } = wrong((_w, input) => use(input.region as never));
    expect(code).toBe("invalid_workflow");
    expect(message).toContain(`cannot be ${used}: the definition runs once`);
    expect(message).toContain('workflow "test": input.region');
  });

  test("awaited", async () => {
    const refs: Ref<string>[] = [];
    workflow("test", input, (w, { region }) => {
      refs.push(region);
      w.task("a", tick);
    });
    const waiting = (async () => refs[0])();
    await expect(waiting).rejects.toMatchObject({
      code: "invalid_workflow",
      message: expect.stringContaining("cannot be awaited"),
    });
  });

  test("used in another workflow", () => {
    let other: Node & Ref<{ at: string }>;
    workflow("other", {}, (w) => void (other = w.task("a", tick)));
    expect(wrong((w) => w.task("b", report, { at: other.at })).message).toBe(
      'workflow "test", node "b": a.at is a reference of another workflow, "other"',
    );
    expect(wrong((w) => w.task("b", tick, undefined, { after: [other] })).message).toContain(
      'a node of another workflow, "other"',
    );
  });

  test("used outside its each if it is an item", () => {
    let item: Ref<string>;
    const { message } = wrong((w, { list }) => {
      w.each("e", report, list, (one) => ({ item: (item = one) }), { window: 1 });
      w.each("f", report, list, () => ({ item }), { window: 1 });
    });
    expect(message).toBe('workflow "test", node "f": item exists only in the input of the each "e"');
  });
});

test("a workflow reference can be inspected in a debugger", async () => {
  const { inspect } = await import("node:util");
  workflow("test", input, (w, input) => {
    expect(() => inspect(input.region)).not.toThrow();
    w.task("a", tick);
  });
});

describe("a workflow refuses a value that is not JSON and names its node:", () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  class Holder {
    constructor(readonly held: unknown) {}
  }
  test.each<[string, unknown, string]>([
    ["NaN", { a: Number.NaN }, "NaN at $.a"],
    ["a Map", { a: [new Map()] }, "a Map at $.a[0]"],
    ["a function", { a: () => 1 }, "a function at $.a"],
    ["a BigInt", { a: 1n }, "a BigInt at $.a"],
    ["a circular object", circle, "a circular reference to"],
    ["a lone surrogate", { a: loneHigh }, "a lone surrogate"],
    ["deep nesting", { a: nested(1_001) }, "nested more than"],
    ["extremely deep nesting", { a: nested(100_000) }, "nested too deep"],
    ["an object that throws", { a: hostile() }, "threw"],
  ])("%s", (_, value, why) => {
    const { code, message } = wrong((w) => w.task("a", report, value as Record<string, unknown>));
    expect(code).toBe("invalid_workflow");
    expect(message).toContain('workflow "test", node "a": ');
    expect(message).toContain(why);
  });

  test("a reference inside a class instance", () => {
    const { message } = wrong((w, { n }) => w.task("a", report, { held: new Holder(n) }));
    expect(message).toContain("the input is not JSON");
  });

  test("a reference beside a $ref key", () => {
    const { message } = wrong((w, { n }) => w.task("a", report, { x: { $ref: 1, n } }));
    expect(message).toContain('an object with a key "$ref" or "$literal" cannot hold references');
  });
});

describe("a workflow definition refuses", () => {
  test("an input without references that the schema refuses", () => {
    const strict = task("strict", { input: z.object({ n: z.number().max(5) }) });
    expect(wrong((w) => w.task("a", strict, { n: 6 })).message).toContain(
      'workflow "test", node "a": the input is not valid: n:',
    );
    const items = wrong((w, { list }) => w.each("e", strict, list, () => ({ n: 6 }), { window: 1 }));
    expect(items.message).toContain('node "e": the input is not valid: n:');
    expect(() => workflow("test", input, (w, { n }) => void w.task("a", strict, { n }))).not.toThrow();
  });

  test.each<[string, (w: Scope, input: Ref<Input>) => unknown, string]>([
    ["no nodes", () => undefined, "it has no nodes"],
    [
      "a duplicate name",
      (w) => {
        w.task("a", tick);
        w.sleep("a", 1);
      },
      'node "a": another node has the same name',
    ],
    ["a reserved name", (w) => w.task("input", tick), "a node cannot be named input"],
    ["a bad name", (w) => w.task("", tick), 'node name "" is not allowed'],
    ["a name that is not text", (w) => w.task(5 as never, tick), "node name 5 is not allowed"],
    [
      "a value that is not a task",
      (w) => w.task("a", { type: "x" } as never, ANY),
      'node "a": its task must be made by task(name, options)',
    ],
    ["a window of 0", eachWith({ window: 0 }), "window must be an integer from 1"],
    ["a window of 1.5", eachWith({ window: 1.5 }), 'node "e": window must be an integer'],
    ["a window of NaN", eachWith({ window: Number.NaN }), 'node "e": window must be an integer'],
    ["a window that is text", eachWith({ window: "3" }), 'node "e": window must be an integer'],
    ["an infinite window", eachWith({ window: Infinity }), 'node "e": window must be an integer'],
    ["no window", eachWith({}), "window is missing"],
    ["no options of an each", eachWith(undefined), "window is missing"],
    ["a misspelt option", eachWith({ window: 1, onerror: "finish" }), 'no option "onerror"'],
    ["an unknown policy", eachWith({ window: 1, onError: "skip" }), 'onError must be "failFast"'],
    ["zero attempts", eachWith({ window: 1, attempts: 0 }), "attempts must be an integer from 1"],
    [
      "items that are not a list",
      (w) => w.each("e", tick, "ab" as never, ANY, { window: 1 }),
      "input must be a function",
    ],
    [
      "text instead of a list",
      (w) => w.each("e", tick, "ab" as never, () => undefined, { window: 1 }),
      "items must be a list, or a reference to one",
    ],
    ["an after that is not a list", (w) => w.sleep("s", 1, { after: ANY }), "after must be a list"],
    ["an after that is not a node", (w) => w.sleep("s", 1, { after: [{}] as never }), "only come after"],
    [
      "an after with an unknown condition",
      (w) => w.sleep("s", 1, { after: [{ node: w.task("a", tick), on: "then" as never }] }),
      'on must be "success" or "failure" or "end"',
    ],
    ["a negative sleep", (w) => w.sleep("s", -1), "ms must be an integer from 0"],
    ["a sleep of NaN", (w) => w.sleep("s", Number.NaN), 'node "s": ms must be an integer'],
    ["a sleep of a bare reference", (w, { n }) => w.sleep("s", n as never), 'node "s": a sleep takes ms, or { until }'],
    [
      "a sleep until text that is not a time",
      (w) => w.sleep("s", { until: "tomorrow" as never }),
      "until must be ISO 8601 text",
    ],
    ["a sleep until nothing", (w) => w.sleep("s", { until: undefined as never }), "until must be ISO 8601 text"],
    ["a sleep of an invalid value", (w) => w.sleep("s", ANY), "sleep options must be an object"],
    ["an event with a control character in its name", (w) => w.waitFor("a", "b\0"), 'node "a": event name "b\\u0000"'],
    ["an event without a name", (w) => w.waitFor("a", ""), 'event name "" is not allowed'],
    ["an invalid schema", (w) => w.waitFor("a", "b", { schema: {} as never }), "schema must be a Standard Schema"],
    ["a when of a value", (w) => w.when("a", 5 as never, () => 1), "a when needs a reference"],
    [
      "an unknown condition",
      (w, { n }) => w.when("a", n, { like: 1 } as never, () => 1),
      'condition has no option "like"',
    ],
    [
      "two conditions",
      (w, { n }) => w.when("a", n, { above: 1, below: 5 } as never, () => 1),
      "a condition must be one of",
    ],
    [
      "a condition on a reference",
      (w, { n }) => w.when("a", n, { equals: n } as never, () => 1),
      'node "a": a condition compares with a value',
    ],
    [
      "a condition on NaN",
      (w, { n }) => w.when("a", n, { equals: Number.NaN }, () => 1),
      'node "a": the input is not JSON: NaN',
    ],
    ["a when without a branch", (w, { n }) => w.when("a", n, "truthy", ANY), "must be a function"],
    [
      "two different dependencies on one node",
      (w) => {
        const a = w.task("a", tick);
        w.task("b", tick, undefined, { after: [a, { node: a, on: "failure" }] });
      },
      'node "b": it comes after "a" both on success and on failure',
    ],
    [
      "a recovering branch without nodes",
      (w) => w.onFailure(w.task("a", tick), () => undefined, { recover: true }),
      "a branch that recovers needs at least one node",
    ],
    [
      "onFailure on several nodes",
      (w) => w.onFailure(w.sequence("s", (s) => s.task("a", tick)) as never, () => 1),
      "onFailure takes one node",
    ],
    [
      "a direct read of a node in its failure branch",
      (w) => {
        const a = w.task("a", tick);
        w.onFailure(a, (f) => void f.task("b", report, { at: a.at }));
      },
      'node "b": it reads the output of "a", but may run although that node failed',
    ],
    [
      "a direct read of a node after its end",
      (w) => {
        const a = w.task("a", tick);
        w.task("b", report, { at: a.at }, { after: [{ node: a, on: "end" }] });
      },
      'node "b": it reads the output of "a", but may run although that node failed',
    ],
    [
      "ended on several nodes",
      (w) => w.ended(w.sequence("s", (s) => s.task("a", tick)) as never),
      "ended takes one node",
    ],
    ["ended on a value that is not a node", (w, { list }) => w.ended(list as never), "only come after nodes"],
    [
      "a reference into a branch",
      (w, { n }) => {
        let inner: Ref<{ at: string }>;
        w.when("c", n, (b) => void (inner = b.task("a", tick)));
        w.task("b", report, { at: inner!.at });
      },
      'node "b": a.at belongs to a branch that may not run',
    ],
    [
      "a reference from one branch into the other",
      (w, { n }) => {
        let inner: Ref<{ at: string }>;
        w.when(
          "c",
          n,
          (b) => void (inner = b.task("a", tick)),
          (b) => void b.task("b", report, { at: inner.at }),
        );
      },
      'node "b": a.at belongs to a branch that may not run',
    ],
    [
      "a result in a branch",
      (w, { n }) => {
        let inner: Ref<{ at: string }>;
        w.when("c", n, (b) => void (inner = b.task("a", tick)));
        return inner!;
      },
      "a belongs to a branch that may not run",
    ],
    ["an async callback", async (w) => void w.task("a", tick), "must not be async"],
    [
      "a node in the callback of an each",
      (w, { list }) => w.each("e", tick, list, () => void w.task("a", tick), { window: 1 }),
      "whose callback is not running",
    ],
    [
      "the outer scope used in an inner callback",
      (w) => w.sequence("s", () => void w.task("a", tick)),
      "whose callback is not running",
    ],
  ])("%s", (_, write, message) => {
    const error = wrong(write);
    expect(error.code).toBe("invalid_workflow");
    expect(error.message).toContain(message);
  });

  function eachWith(options: unknown) {
    return (w: Scope, { list }: Ref<Input>) => w.each("e", tick, list, () => undefined, options as { window: number });
  }

  test("a node added after the definition", () => {
    let late: Scope;
    workflow("test", {}, (w) => void (late = w).task("a", tick));
    expect(caught(() => late.task("b", tick)).message).toContain("whose callback is not running");
  });

  test("an event with two schemas", () => {
    const { message } = wrong((w) => {
      w.waitFor("a", "go", { schema: z.string() });
      w.waitFor("b", "go", { schema: z.number() });
    });
    expect(message).toBe('workflow "test", node "b": event "go" has a different schema in another node');
  });

  test("an invalid name, option or callback", () => {
    const none = (): void => {};
    expect(caught(() => workflow("", {}, none)).code).toBe("invalid_workflow");
    expect(caught(() => workflow("a", { in: 1 } as object, none)).message).toContain('option "in"');
    expect(caught(() => workflow("a", { input: 5 as never }, none)).message).toContain(
      "input must be a Standard Schema",
    );
    expect(caught(() => workflow("a", {}, ANY)).message).toContain("must be a function");
  });

  test("more than 500 nodes", () => {
    const write = (count: number) => (w: Scope) => {
      for (let i = 0; i < count; i++) w.task(`n${i}`, tick);
    };
    expect(wrong(write(501)).message).toContain("it has 501 nodes, but at most 500 are allowed");
    expect(workflow("test", {}, (w) => write(500)(w)).graph.nodes).toHaveLength(500);
  });

  test("a reference to a list instead of an item, by its types alone", () => {
    const { graph } = workflow("test", {}, (w) => {
      const list = w.task("list", listAccounts, { region: "eu" });
      // @ts-expect-error a list is no account; at a run the schema of the task refuses it
      w.task("sync", syncAccount, { account: list.accounts });
    });
    expect(graph.nodes).toHaveLength(2);
  });
});
