import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type } from "../../src/client.js";
import type { CompiledTemplate } from "../../src/postgres/workflow/declare.js";
import { compileGraph } from "../../src/workflow/compile.js";
import { encodeRunInput } from "../../src/workflow/input.js";
import { readGraph } from "../../src/workflow/read.js";
import { workflow } from "../../src/workflow/workflow.js";
import { render, renderData, ROOT_NUMBERS } from "./render.js";
import { listAccounts, report, syncAccount, tick } from "./tasks.js";

const whole = (node: number, ...path: string[]): CompiledTemplate => ({
  parts: ["", ""],
  nodes: [node],
  paths: [path],
});

test("compileGraph turns every kind of node into a step with numbered nodes and split templates", () => {
  const { graph } = workflow("all", { input: type<{ at: string }>() }, (w, input) => {
    const list = w.task("list", listAccounts, { region: "eu" }, { priority: 2 });
    const sync = w.each("sync", syncAccount, list.accounts, (account, index) => ({ account, index }), {
      window: 3,
      onError: "collect",
      attempts: 2,
    });
    w.when("any", sync.counts.failed, { above: 0 }, (b) => {
      b.sleep("until", { until: input.at });
    });
    w.sleep("nap", 5, { after: [sync] });
    const go = w.waitFor("go", "approved", { timeoutMs: 9 });
    w.onFailure(go, (f, failure) => void f.task("sorry", report, { why: failure.message }), {
      recover: true,
    });
    return { rows: sync.results, at: input.at };
  });
  const compiled = compileGraph(graph);
  expect(compiled).toMatchObject({ name: "all", graph });
  expect(compiled.digest).toMatch(/^[0-9a-f]{64}$/);
  expect(compiled.result).toEqual({
    parts: ['{"rows":', ',"at":', "}"],
    nodes: [2, 0],
    paths: [["results"], ["at"]],
  });
  expect(compiled.steps).toEqual([
    {
      name: "list",
      kind: "task",
      after: [],
      type: "list-accounts",
      queue: "default",
      priority: 2,
      input: { parts: ['{"region":"eu"}'], nodes: [], paths: [] },
    },
    {
      name: "sync",
      kind: "each",
      after: [{ node: 1, on: "success" }],
      type: "sync-account",
      queue: "slow",
      attempts: 2,
      items: whole(1, "accounts"),
      input: { parts: ['{"account":', ',"index":', "}"], nodes: [-1, -2], paths: [[], []] },
      window: 3,
      onError: "collect",
    },
    {
      name: "any",
      kind: "when",
      after: [{ node: 2, on: "success" }],
      ref: whole(2, "counts", "failed"),
      is: "above",
      value: 0,
    },
    { name: "until", kind: "sleep", after: [{ node: 3, on: "then" }], until: whole(0, "at") },
    { name: "nap", kind: "sleep", after: [{ node: 2, on: "success" }], ms: 5 },
    { name: "go", kind: "waitFor", after: [], event: "approved", timeoutMs: 9 },
    {
      name: "sorry",
      kind: "task",
      after: [{ node: 6, on: "failure", recovers: true }],
      type: "report",
      queue: "default",
      input: { parts: ['{"why":', "}"], nodes: [6], paths: [["error", "message"]] },
    },
  ]);
});

test("a graph survives a round trip through JSON", () => {
  const made = workflow("test", {}, (w) => {
    const list = w.task("list", listAccounts, { region: "eu" });
    w.sequence("s", (s) => {
      s.each("sync", syncAccount, list.accounts, (account) => ({ account }), { window: 3 });
      s.when("more", list.next, (b) => void b.task("tick", tick));
      s.task("last", report, { list, odd: { $ref: 5 } });
    });
    w.onFailure(list, (f) => void f.task("undo", tick), { recover: true });
    return w.ended(list).total;
  });
  const read = readGraph(JSON.parse(JSON.stringify(made.graph)));
  expect(read).toEqual(made.graph);
  expect(compileGraph(read)).toEqual(compileGraph(made.graph));
  expect(compileGraph(read).digest).toBe(made.digest);
});

test("the digest of a graph ignores the order of keys but not the order of a list", () => {
  const digest = (input: unknown): string =>
    compileGraph(
      readGraph({
        version: 1,
        name: "test",
        nodes: [{ input, type: "t", kind: "task", name: "a" }],
      }),
    ).digest;
  expect(digest({ x: 1, y: [1, 2] })).toBe(digest({ y: [1, 2], x: 1 }));
  expect(digest({ x: 1, y: [1, 2] })).not.toBe(digest({ x: 1, y: [2, 1] }));
});

describe("rendering", () => {
  const key = fc.constantFrom("a", "b", "0", "1", "$ref", "$literal", "__proto__", 'ä\n"');
  const refer = fc
    .tuple(fc.constantFrom("input", "item", "index", "n1", "n2"), fc.array(key, { maxLength: 3 }))
    .map(([root, path]) => ({ $ref: [root, ...path] }));
  const literal = fc.jsonValue({ maxDepth: 2 }).map((value) => ({ $literal: value }));
  const { template } = fc.letrec<{ template: unknown; object: unknown; list: unknown }>((tie) => ({
    template: fc.oneof(
      { maxDepth: 4 },
      fc.oneof(refer, literal, fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true })),
      fc.constantFrom(null, true, false, "", 0),
      tie("object"),
      tie("list"),
    ),
    object: fc.dictionary(
      fc.string().filter((name) => name !== "$ref" && name !== "$literal"),
      tie("template"),
      { maxKeys: 4 },
    ),
    list: fc.array(tie("template"), { maxLength: 4 }),
  }));
  const values = fc.array(fc.dictionary(key, fc.jsonValue()), { minLength: 5, maxLength: 5 });

  test("the compiled parts equals rendering the original template", () => {
    const rendered = fc.property(template, values, (input, five) => {
      const graph = readGraph({
        version: 1,
        name: "test",
        nodes: [
          { name: "n1", kind: "task", type: "t" },
          { name: "n2", kind: "task", type: "t" },
          { name: "e", kind: "each", type: "t", items: [], window: 1, input },
        ],
      });
      const numbers = new Map(Object.entries({ ...ROOT_NUMBERS, n1: 1, n2: 2 }));
      // Values of a run always pass through JSON.
      const stored = JSON.parse(JSON.stringify(five)) as unknown[];
      const all = new Map([...numbers.values()].map((number, i) => [number, stored[i]]));
      const compiled = compileGraph(graph).steps[2]!.input!;
      expect(compiled.parts).toHaveLength(compiled.nodes.length + 1);
      const direct = renderData(JSON.parse(JSON.stringify(input)), all, numbers);
      expect(JSON.stringify(render(compiled, all))).toBe(JSON.stringify(direct));
    });
    fc.assert(rendered, { numRuns: 500 });
  });

  test("a missing path gives null, and lists are indexed from 0", () => {
    const { graph } = workflow("test", { input: type<{ list: { a?: number }[] }>() }, (w, input) => {
      w.task("t", report, { first: input.list[0]!.a, none: input.list[5]!.a });
    });
    const { input } = compileGraph(graph).steps[0]!;
    const values = new Map([[0, { list: [{ a: 7 }] }]]);
    expect(render(input!, values)).toEqual({ first: 7, none: null });
  });
});

test("the input of a run is stored as its schema outputs it", async () => {
  const input = z.object({ region: z.string().default("eu"), at: z.coerce.date() });
  const made = workflow("test", { input }, (w) => void w.task("a", tick));
  const given = { at: "2026-01-02" };
  const stored = '{"region":"eu","at":"2026-01-02T00:00:00.000Z"}';
  expect(encodeRunInput(made, given, 1_000)).toBe(stored);
  // A schema may be asynchronous.
  const slow = input.refine(() => Promise.resolve(true));
  const later = workflow("test", { input: slow }, (w) => void w.task("a", tick));
  expect(await encodeRunInput(later, given, 1_000)).toBe(stored);
  expect(() => encodeRunInput(made, { at: "never" }, 1_000)).toThrow(
    expect.objectContaining({ code: "input_invalid" }),
  );
  expect(() => encodeRunInput(made, given, 10)).toThrow(expect.objectContaining({ code: "input_too_large" }));
  const none = workflow("test", {}, (w) => void w.task("a", tick));
  expect(encodeRunInput(none, undefined, 1_000)).toBe("null");
});
