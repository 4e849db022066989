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

test("the nightly workflow compiles to its documented graph", () => {
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

describe("the dependencies of nodes", () => {
  test("come from references and from after, once per node", () => {
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

  test("come from the list, the input and after for an each", () => {
    const after = afterOf((w) => {
      const a = w.task("a", listAccounts, { region: "eu" });
      const b = w.task("b", tick);
      const c = w.task("c", tick);
      const options = { window: 2, after: [c] };
      w.each("e", syncAccount, a.accounts, (account) => ({ account, region: b.at }), options);
    });
    expect(after["e"]).toEqual(["c", "a", "b"]);
  });

  test("point to the previous node in a sequence, also across a when and an inner sequence", () => {
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

  test("point to the side of the condition in a branch, and to the last nodes of the branches in a join", () => {
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

  test("point to the failure in a failure branch, which reads the failed node without waiting for success", () => {
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

describe("a node that may fail", () => {
  test("is read with ended, which waits only for its end", () => {
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
    // A node that also needs its success waits for that.
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

  test("is still a node and may be null when a branch returns it", () => {
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

  test("can be the result of a run only with ended if its failure is caught", () => {
    const make = (result: (a: object, ended: object) => unknown) => () =>
      workflow("test", {}, (w) => {
        const a = w.task("a", tick);
        const b = w.task("b", report, { a });
        w.onFailure(a, (f) => f.task("c", tick), { recover: true });
        return result(b, w.ended(b));
      });
    expect(make((b) => b)).toThrow('its result reads the output of "b"');
    expect(make((_b, over) => ({ over }))().graph.result).toEqual({ over: { $ref: ["b"] } });
  });
});

test("onFailure within a branch waits for the failure and the branch, unless the node belongs to that branch", () => {
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

describe("kinds of workflow nodes", () => {
  test("a when stores its condition as data", () => {
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

  test("a sleep has a duration or a time, and a waitFor has an event and a schema", () => {
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

  test("an each accepts a literal list and options for its items", () => {
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

  test("nodes keep the names of their sequences for pictures", () => {
    const { graph } = workflow("test", {}, (w) => {
      w.sequence("outer", (s) => {
        s.task("a", tick);
        s.sequence("inner", (i) => void i.task("b", tick));
      });
    });
    expect(graph.nodes.map((node) => node.part)).toEqual([["outer"], ["outer", "inner"]]);
  });
});

describe("the template of an input", () => {
  test("is copied as JSON when it is given", () => {
    const given = { at: new Date(0), list: [1, { two: 2 }], gone: undefined, __proto__: null };
    const { graph } = workflow("test", {}, (w) => void w.task("a", report, given));
    given.list.push(3);
    expect(graph.nodes[0]).toMatchObject({
      input: { at: "1970-01-01T00:00:00.000Z", list: [1, { two: 2 }] },
    });
  });

  test("may have any key, including __proto__, $ref and $literal", () => {
    const odd: unknown = JSON.parse('{"__proto__": {"a": 1}, "x": {"$ref": ["input"]}}');
    const { graph } = workflow("test", {}, (w, input) => {
      w.task("a", report, { odd, input });
    });
    expect(JSON.stringify(graph.nodes[0])).toContain(
      '"input":{"odd":{"__proto__":{"a":1},"x":{"$literal":{"$ref":["input"]}}},"input":{"$ref":["input"]}}',
    );
    expect(graph.nodes[0]!.after).toEqual([]);
    // The schema checks the value without these marks.
    const strict = task("strict", { input: z.strictObject({ $ref: z.number() }) });
    expect(workflow("test", {}, (w) => void w.task("a", strict, { $ref: 1 })).graph.nodes[0]).toEqual(
      expect.objectContaining({ input: { $literal: { $ref: 1 } } }),
    );
  });
});

test("the return value of a definition is the result of a run", () => {
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

test("the digest of a graph depends only on its content", () => {
  const make = (window: number) =>
    workflow("test", {}, (w) => {
      const list = w.task("list", listAccounts, { region: "eu" });
      w.each("sync", syncAccount, list.accounts, (account) => ({ account }), { window });
    }).digest;
  expect(make(3)).toBe(make(3));
  expect(make(3)).not.toBe(make(4));
  expect(make(3)).toMatch(/^[0-9a-f]{64}$/);
});

test("callbacks of a workflow run once, at its definition", () => {
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

test("an asynchronous schema is not checked at the definition of a workflow", () => {
  const slow = task("slow", { input: z.string().refine(() => Promise.resolve(false)) });
  expect(workflow("test", {}, (w) => void w.task("a", slow, "x")).graph.nodes).toHaveLength(1);
});
