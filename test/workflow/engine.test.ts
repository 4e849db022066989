import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { task, type } from "../../src/client.js";
import { compileGraph } from "../../src/workflow/compile.js";
import type { Graph } from "../../src/workflow/graph.js";
import { readGraph } from "../../src/workflow/read.js";
import { workflow } from "../../src/workflow/workflow.js";
import { fulfil, nightly } from "../docs/workflows.page.js";
import { Play, type Ending, type InHand } from "../postgres/workflow/play.js";
import { renderData, ROOT_NUMBERS } from "./render.js";

// Compiled definitions, run by the engine itself.
let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

async function start(graph: Graph, input: unknown): Promise<number> {
  const { name, digest, steps, result } = compileGraph(graph);
  const id = await play.db.value<number>("select sluice.workflow_declare($1, $2, $3, $4, $5)", [
    name,
    digest,
    JSON.stringify(graph),
    JSON.stringify(steps),
    result === undefined ? null : JSON.stringify(result),
  ]);
  const [run] = await play.start(id, input);
  return run!;
}

const open = async (...types: string[]): Promise<void> =>
  void (play = await Play.open(Object.fromEntries(types.map((type) => [type, {}]))));
const inputsOf = (type: string): unknown[] => play.started.filter((one) => one.type === type).map(({ input }) => input);

test("the nightly workflow of the workflows page runs as documented", async () => {
  await open("list-accounts", "sync-account", "write-report");
  const run = await start(nightly.graph, { region: "eu" });
  await play.drain(({ type, input }: InHand): Ending => {
    if (type === "list-accounts") return { result: { accounts: ["a", "b", "c"].map((id) => ({ id })) } };
    if (type === "write-report") return { result: { url: "there" } };
    return (input as { account: string }).account === "b" ? { fail: "no b" } : { result: { rows: 5 } };
  });
  expect(inputsOf("list-accounts")).toEqual([{ region: "eu" }]);
  expect(inputsOf("sync-account")).toEqual(["a", "b", "c"].map((account) => ({ account })));
  expect(inputsOf("write-report")).toEqual([{ rows: [{ rows: 5 }, null, { rows: 5 }], failed: 1 }]);
  expect(await play.state(run)).toBe("succeeded");
  expect(await play.result(run)).toEqual({ url: "there", failed: 1 });
});

describe("the order workflow of the workflows page", () => {
  const types = ["reserve", "charge", "release", "pack", "ship"];
  const results = ({ type }: InHand): Ending => ({
    result: type === "reserve" ? { id: "r1" } : {},
  });
  const order = { id: "o1", total: 50, parcels: ["x", "y"] };

  test("charges and ships a small order without an approval", async () => {
    await open(...types);
    const run = await start(fulfil.graph, order);
    await play.drain(results);
    expect(inputsOf("charge")).toEqual([{ order: "o1", approvedBy: null }]);
    expect(inputsOf("pack")).toEqual([
      { parcel: "x", index: 0 },
      { parcel: "y", index: 1 },
    ]);
    expect(await play.nodes(run)).toEqual({
      reserve: "succeeded",
      large: "succeeded",
      approval: "skipped",
      "give up": "skipped",
      charge: "succeeded",
      release: "skipped",
      pack: "succeeded",
      pause: "running",
      ship: "pending",
    });
  });

  test("waits for the approval of a large order", async () => {
    await open(...types);
    const run = await start(fulfil.graph, { ...order, total: 5_000 });
    await play.drain(results);
    expect(inputsOf("charge")).toEqual([]);
    await play.db.value("select sluice.workflow_send($1, $2, $3)", [run, "approved", '{"by":"me"}']);
    await play.drain(results);
    expect(inputsOf("charge")).toEqual([{ order: "o1", approvedBy: "me" }]);
  });

  test("releases the reservation if the charge fails, and the run succeeds", async () => {
    await open(...types);
    const run = await start(fulfil.graph, order);
    await play.drain((task) => (task.type === "charge" ? { fail: "no money" } : results(task)));
    expect(inputsOf("release")).toEqual([{ reservation: "r1", why: "no money" }]);
    expect(inputsOf("pack")).toEqual([]);
    expect(await play.nodes(run)).toMatchObject({ charge: "failed", ship: "skipped" });
    expect(await play.state(run)).toBe("succeeded");
  });
});

test("ended gives the error of a failed node and the item results of a failed each", async () => {
  const fails = task("fails", { output: type<{ at: string }>() });
  const item = task("item", { input: type<number>(), output: type<{ n: number }>() });
  const note = task("note", { input: type<unknown>() });
  const { graph } = workflow("test", {}, (w) => {
    const bad = w.task("bad", fails);
    const each = w.each("each", item, [1, 2], (n) => n, { window: 2, onError: "finish" });
    const nap = w.sleep("nap", 0);
    w.onFailure(each, (f) => {
      const { results, counts } = w.ended(each);
      f.task("undo", note, { results, failed: counts.failed });
    });
    const skipped = w.task("skipped", note, bad.at);
    w.task("tell", note, {
      whole: w.ended(bad),
      at: w.ended(bad).at,
      why: w.ended(bad).error.message,
      skipped: w.ended(skipped),
      nap: w.ended(nap).error,
    });
  });
  await open("fails", "item", "note");
  await start(graph, null);
  await play.drain(({ type: what, input }) =>
    what === "fails" || input === 2 ? { fail: `no ${what}` } : { result: { n: input } },
  );
  expect(inputsOf("note")).toEqual([
    {
      whole: { error: { message: "no fails" } },
      at: null,
      why: "no fails",
      skipped: null,
      nap: null,
    },
    { results: [{ n: 1 }, null], failed: 1 },
  ]);
});

test("SQL renders any template like the reference implementation", async () => {
  await open("t");
  const key = fc.constantFrom("a", "b", "0", "1", "", 'ä\n"', "{x,y}", "NULL", "back\\slash");
  const refer = fc
    .tuple(fc.constantFrom("input", "first"), fc.array(key, { maxLength: 3 }))
    .map(([root, path]) => ({ $ref: [root, ...path] }));
  const text = fc.string({ unit: "grapheme" }).filter((s) => !/[\0\p{Cs}]/u.test(s));
  const { template } = fc.letrec<{ template: unknown }>((tie) => ({
    template: fc.oneof(
      { maxDepth: 3 },
      fc.oneof(refer, text, fc.integer(), fc.constantFrom(null, true, "%s", "$1", "\\", 1e21)),
      fc.dictionary(key, tie("template"), { maxKeys: 4 }),
      fc.array(tie("template"), { maxLength: 4 }),
    ),
  }));
  const value = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.oneof(text, fc.integer(), fc.constantFrom(null, false, "", 0)),
      fc.dictionary(key, tie("value")),
      fc.array(tie("value"), { maxLength: 3 }),
    ),
  })).value;
  const [templates, values] = [
    fc.sample(template, { numRuns: 150, seed: 7 }),
    fc.sample(value, { numRuns: 40, seed: 7 }).filter((one) => typeof one === "object"),
  ];
  const stored = JSON.parse(JSON.stringify({ a: values, b: values })) as unknown;
  const graph = readGraph({
    version: 1,
    name: "test",
    nodes: [
      { name: "first", kind: "task", type: "t" },
      ...templates.map((input, i) => ({
        name: `n${i}`,
        kind: "task",
        type: "t",
        after: ["first"],
        input: [i, input],
      })),
    ],
  });
  const run = await start(graph, stored);
  await play.drain(({ input }) => ({ result: input === null ? stored : null }));
  const numbers = new Map(Object.entries({ ...ROOT_NUMBERS, first: 1 }));
  const all = new Map([
    [ROOT_NUMBERS.input, stored],
    [1, stored],
  ]);
  const rendered = (inputsOf("t").slice(1) as [number, unknown][]).toSorted(([a], [b]) => a - b);
  expect(rendered).toEqual(
    templates.map((input, i) => [i, renderData(JSON.parse(JSON.stringify(input)) as unknown, all, numbers)]),
  );
  expect(await play.state(run)).toBe("succeeded");
});
