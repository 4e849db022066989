import { describe, expect, test } from "vitest";
import { z } from "zod";
import { task, type } from "../../src/client.js";
import { workflow } from "../../src/workflow/workflow.js";
import type { Scope } from "../../src/workflow/scope.js";
import { listAccounts, report, syncAccount, tick } from "./tasks.js";

const region = { input: type<{ region: string; at: string; parts: string[] }>() };

/** The dependencies of every node of a workflow, by name. */
function afterOf(write: (w: Scope) => void): Record<string, unknown> {
  const { graph } = workflow("test", {}, (w) => write(w));
  return Object.fromEntries(graph.nodes.map((node) => [node.name, node.after]));
}

test("the workflow of the issue is the graph of the design", () => {
  const nightly = workflow("nightly", { input: z.object({ region: z.string() }) }, (w, input) => {
    const list = w.task("list", listAccounts, { region: input.region });
    const sync = w.each("sync", syncAccount, list.accounts, (a) => ({ account: a }), {
      window: 3,
      onError: "collect",
    });
    w.task("report", report, { synced: sync.results });
  });
  expect(nightly.graph).toEqual({
    version: 1,
    name: "nightly",
    nodes: [
      {
        name: "list",
        kind: "task",
        type: "list-accounts",
        queue: "default",
        after: [],
        input: { region: { $ref: ["input", "region"] } },
      },
      {
        name: "sync",
        kind: "each",
        type: "sync-account",
        queue: "slow",
        after: ["list"],
        items: { $ref: ["list", "accounts"] },
        input: { account: { $ref: ["item"] } },
        window: 3,
        onError: "collect",
      },
      {
        name: "report",
        kind: "task",
        type: "report",
        queue: "default",
        after: ["sync"],
        input: { synced: { $ref: ["sync", "results"] } },
      },
    ],
  });
  expect(nightly.contracts).toEqual([listAccounts, syncAccount, report]);
  expect(JSON.parse(JSON.stringify(nightly.graph))).toEqual(nightly.graph);
});

describe("dependencies", () => {
  test("come from references and from after, each node once", () => {
    const after = afterOf((w) => {
      const a = w.task("a", tick);
      const b = w.task("b", tick);
      const c = w.task("c", tick);
      w.task("d", report, { a: a.at, again: { a: [a], b: b.at } }, { after: [b, c] });
      w.task(
        "e",
        report,
        { a: w.ended(a), at: w.ended(a).at },
        {
          after: [
            { node: a, on: "end" },
            { node: b, on: "failure" },
          ],
        },
      );
    });
    expect(after).toEqual({
      a: [],
      b: [],
      c: [],
      d: ["b", "c", "a"],
      e: [
        { node: "a", on: "end" },
        { node: "b", on: "failure" },
      ],
    });
  });

  test("of an each come from its list, its input and after", () => {
    const after = afterOf((w) => {
      const a = w.task("a", listAccounts, { region: "eu" });
      const b = w.task("b", tick);
      const c = w.task("c", tick);
      const options = { window: 2, after: [c] };
      w.each("e", syncAccount, a.accounts, (account) => ({ account, region: b.at }), options);
    });
    expect(after["e"]).toEqual(["c", "a", "b"]);
  });

  test("in a sequence are each on the one before, also across a when and an inner sequence", () => {
    const after = afterOf((w) => {
      const chain = w.sequence("chain", (s) => {
        const first = s.task("first", tick);
        s.sleep("nap", 5);
        s.when("maybe", first.at, (b) => {
          b.task("x", tick);
          b.sequence("inner", (i) => {
            i.task("y1", tick);
            i.task("y2", tick);
          });
        });
        s.sequence("rest", (r) => {
          r.task("z1", tick);
          r.task("z2", tick);
        });
        s.task("last", tick);
      });
      w.task("behind", tick, undefined, { after: [chain] });
    });
    const then = { node: "maybe", on: "then" };
    expect(after).toEqual({
      first: [],
      nap: ["first"],
      maybe: ["nap", "first"],
      x: [then],
      y1: [then],
      y2: [then, "y1"],
      z1: ["maybe", "x", "y2"],
      z2: ["z1"],
      last: ["z2"],
      behind: ["last"],
    });
  });

  test("in a branch are on its side of the condition, and a join is on what the branches end with", () => {
    const after = afterOf((w) => {
      const list = w.task("list", listAccounts, { region: "eu" });
      const many = w.when(
        "many",
        list.total,
        { above: 100 },
        (b) => {
          const one = b.task("one", tick);
          return b.task("two", report, { one, list });
        },
        (b) => b.task("three", tick),
      );
      w.task("join", report, { url: many.yes.url, at: many.no.at });
      w.task("behind", tick, undefined, { after: [many] });
    });
    const then = { node: "many", on: "then" };
    expect(after).toEqual({
      list: [],
      many: ["list"],
      one: [then],
      two: [then, "one", "list"],
      three: [{ node: "many", on: "else" }],
      join: ["two", "three"],
      behind: ["many", "two", "three"],
    });
  });

  test("in a branch for a failure are on the failure, and what failed is read without waiting for its success", () => {
    const after = afterOf((w) => {
      const paid = w.task("pay", tick);
      w.onFailure(
        paid,
        (f, failure) => {
          const undo = f.task("undo", report, { why: failure.message });
          f.when("known", failure.code, "exists", (b) => {
            b.task("tell", report, { code: failure.code, undo });
          });
          f.onFailure(undo, (g) => void g.task("alarm", tick));
        },
        { recover: true },
      );
      w.task("ship", report, { paid });
    });
    const failed = { node: "pay", on: "failure", recover: true };
    expect(after).toEqual({
      pay: [],
      undo: [failed],
      known: [failed],
      tell: [{ node: "known", on: "then" }, { node: "pay", on: "end" }, "undo"],
      alarm: [{ node: "undo", on: "failure" }, failed],
      ship: ["pay"],
    });
  });
});

describe("what need not have succeeded", () => {
  test("is read as ended, and then only its end is waited for", () => {
    const { graph } = workflow("test", { input: type<{ items: string[] }>() }, (w, input) => {
      const a = w.task("a", tick);
      const b = w.task("b", tick);
      const each = w.each("each", report, input.items, (item) => ({ item }), { window: 1 });
      const nap = w.sleep("nap", 5);
      w.task("c", report, { over: w.ended(a), at: w.ended(a).at, why: w.ended(a).error, b });
      w.task("d", report, { both: [w.ended(b).at, b.at] });
      w.onFailure(each, (f, failure) => {
        const { results, errors, counts } = w.ended(each);
        f.task("undo", report, { results, errors, counts, why: failure.message });
      });
      w.task("e", report, { why: w.ended(nap).error.message });
    });
    const byName = new Map(graph.nodes.map((node) => [node.name, node]));
    const end = (node: string): object => ({ node, on: "end" });
    expect(byName.get("c")).toMatchObject({
      after: [end("a"), "b"],
      input: {
        over: { $ref: ["a"] },
        at: { $ref: ["a", "at"] },
        why: { $ref: ["a", "error"] },
        b: { $ref: ["b"] },
      },
    });
    // Whoever needs its success too waits for that.
    expect(byName.get("d")!.after).toEqual(["b"]);
    expect(byName.get("undo")).toMatchObject({
      after: [{ node: "each", on: "failure" }],
      input: {
        results: { $ref: ["each", "results"] },
        why: { $ref: ["each", "error", "message"] },
      },
    });
    expect(byName.get("e")!.after).toEqual([end("nap")]);
  });

  test("of what a branch returned stays a node, and may be null", () => {
    const after = afterOf((w) => {
      const list = w.task("list", listAccounts, { region: "eu" });
      const more = w.when("more", list.next, (b) => ({
        sync: b.each("sync", syncAccount, list.accounts, (account) => ({ account }), { window: 1 }),
        odd: [1, { list }],
      }));
      w.task("x", report, { rows: more.yes.sync.results, all: more.yes.odd });
      w.task("y", tick, undefined, { after: [more.yes.sync] });
      w.onFailure(more.yes.sync, (f) => void f.task("z", tick));
    });
    expect(after).toMatchObject({
      x: ["sync", "list"],
      y: ["sync"],
      z: [{ node: "sync", on: "failure" }],
    });
  });

  test("is the result of a run only as ended, where its failure is caught", () => {
    const make = (result: (a: object, ended: object) => unknown) => () =>
      workflow("test", {}, (w) => {
        const a = w.task("a", tick);
        const b = w.task("b", report, { a });
        w.onFailure(a, (f) => f.task("c", tick), { recover: true });
        return result(b, w.ended(b));
      });
    expect(make((b) => b)).toThrow('its result reads "b" as if it had succeeded');
    expect(make((_b, over) => ({ over }))().graph.result).toEqual({ over: { $ref: ["b"] } });
  });
});

test("a failure that is watched from within a branch waits for both, unless the branch is the node's own", () => {
  const after = afterOf((w) => {
    const outer = w.task("outer", listAccounts, { region: "eu" });
    w.when("c", outer.next, (b) => {
      const inner = b.task("inner", tick);
      b.onFailure(inner, (f) => void f.task("x", tick));
      b.onFailure(outer, (f) => void f.task("y", tick));
    });
  });
  expect(after["x"]).toEqual([{ node: "inner", on: "failure" }]);
  expect(after["y"]).toEqual([
    { node: "outer", on: "failure" },
    { node: "c", on: "then" },
  ]);
});

describe("kinds", () => {
  test("a when says its condition as data", () => {
    const { graph } = workflow("test", {}, (w) => {
      const list = w.task("list", listAccounts, { region: "eu" });
      const none = (): void => {};
      w.when("a", list.next, none);
      w.when("b", list.next, "exists", none);
      w.when("c", list.next, { equals: "x" }, none);
      w.when("d", list.total, { below: 5 }, none, none);
      w.when("e", list.next, { differs: null }, none);
      w.when("f", w.task("t", report, {}), { equals: { $ref: [1] } as never }, none);
    });
    const said = graph.nodes.flatMap((n) => (n.kind === "when" ? [[n.name, n.is, n.value]] : []));
    expect(said).toEqual([
      ["a", "truthy", undefined],
      ["b", "exists", undefined],
      ["c", "equals", "x"],
      ["d", "below", 5],
      ["e", "differs", null],
      ["f", "equals", { $ref: [1] }],
    ]);
  });

  test("a sleep has a length or a time, and a waitFor its event and what it must be", () => {
    const schema = type<{ by: string }>();
    const { graph, events } = workflow("test", region, (w, input) => {
      w.sleep("a", 60_000);
      w.sleep("b", { until: input.at });
      const approved = w.waitFor("c", "approved", { timeoutMs: 1_000, schema });
      w.task("d", report, { by: approved.by });
      w.waitFor("e", "cancelled");
    });
    expect(graph.nodes.filter((node) => node.kind !== "task")).toEqual([
      { name: "a", kind: "sleep", ms: 60_000, after: [] },
      { name: "b", kind: "sleep", until: { $ref: ["input", "at"] }, after: [] },
      { name: "c", kind: "waitFor", event: "approved", timeoutMs: 1_000, after: [] },
      { name: "e", kind: "waitFor", event: "cancelled", after: [] },
    ]);
    expect(graph.nodes[3]!.after).toEqual(["c"]);
    expect([...events]).toEqual([["approved", schema]]);
  });

  test("an each may have a list of its own, and says what its items may", () => {
    const { graph } = workflow("test", region, (w, input) => {
      const accounts = [{ id: "a" }, { id: "b" }];
      w.each("e", syncAccount, accounts, (account, index) => ({ account, index }), {
        window: 2,
        attempts: 3,
        priority: -1,
      });
      w.each("f", report, input.parts, (part) => ({ part }), { window: 1, onError: "finish" });
    });
    expect(graph.nodes[0]).toMatchObject({
      items: [{ id: "a" }, { id: "b" }],
      input: { account: { $ref: ["item"] }, index: { $ref: ["index"] } },
      attempts: 3,
      priority: -1,
      onError: "failFast",
    });
    expect(graph.nodes[1]).toMatchObject({ onError: "finish" });
  });

  test("nodes of sequences remember them, for pictures", () => {
    const { graph } = workflow("test", {}, (w) => {
      w.sequence("outer", (s) => {
        s.task("a", tick);
        s.sequence("inner", (i) => void i.task("b", tick));
      });
    });
    expect(graph.nodes.map((node) => node.part)).toEqual([["outer"], ["outer", "inner"]]);
  });
});

describe("a template", () => {
  test("is copied when it is given, as JSON would say it", () => {
    const given = { at: new Date(0), list: [1, { two: 2 }], gone: undefined, __proto__: null };
    const { graph } = workflow("test", {}, (w) => void w.task("a", report, given));
    given.list.push(3);
    expect(graph.nodes[0]).toMatchObject({
      input: { at: "1970-01-01T00:00:00.000Z", list: [1, { two: 2 }] },
    });
  });

  test("may have any key, __proto__ and our own marks included", () => {
    const odd: unknown = JSON.parse('{"__proto__": {"a": 1}, "x": {"$ref": ["input"]}}');
    const { graph } = workflow("test", {}, (w, input) => {
      w.task("a", report, { odd, input });
    });
    expect(JSON.stringify(graph.nodes[0])).toContain(
      '"input":{"odd":{"__proto__":{"a":1},"x":{"$literal":{"$ref":["input"]}}},"input":{"$ref":["input"]}}',
    );
    expect(graph.nodes[0]!.after).toEqual([]);
    // And is judged by its schema without them.
    const strict = task("strict", { input: z.strictObject({ $ref: z.number() }) });
    expect(workflow("test", {}, (w) => void w.task("a", strict, { $ref: 1 })).graph.nodes[0]).toEqual(
      expect.objectContaining({ input: { $literal: { $ref: 1 } } }),
    );
  });
});

test("what the definition returns is what a run results in", () => {
  const { graph } = workflow("test", region, (w, input) => {
    const a = w.task("a", tick);
    return { at: a.at, region: input.region, fixed: [1] };
  });
  expect(graph.result).toEqual({
    at: { $ref: ["a", "at"] },
    region: { $ref: ["input", "region"] },
    fixed: [1],
  });
});

test("the digest is of what a graph says: the same twice, another for another word", () => {
  const make = (window: number) =>
    workflow("test", {}, (w) => {
      const list = w.task("list", listAccounts, { region: "eu" });
      w.each("sync", syncAccount, list.accounts, (account) => ({ account }), { window });
    }).digest;
  expect(make(3)).toBe(make(3));
  expect(make(3)).not.toBe(make(4));
  expect(make(3)).toMatch(/^[0-9a-f]{64}$/);
});

test("callbacks run once, when the workflow is defined", () => {
  let calls = 0;
  const called = (): undefined => void calls++;
  workflow("test", region, (w, input) => {
    called();
    w.sequence("s", (s) => {
      called();
      s.when("c", input.region, called, called);
    });
    const failing = w.each("e", tick, input.parts, called, { window: 1 });
    w.onFailure(failing, called);
  });
  expect(calls).toBe(6);
});

test("a schema that takes its time is not waited for at the definition", () => {
  const slow = task("slow", { input: z.string().refine(() => Promise.resolve(false)) });
  expect(workflow("test", {}, (w) => void w.task("a", slow, "x")).graph.nodes).toHaveLength(1);
});
