import fc from "fast-check";
import { expect, test } from "vitest";
import { drawnEdges, type DrawnEdge } from "../../src/workflow/arrows.js";
import { edgeOf, type GraphNode, type On } from "../../src/workflow/graph.js";
import { readGraph } from "../../src/workflow/read.js";

type Said = Record<string, readonly (string | { node: string; on: On })[]>;

/** A graph by the dependencies of each node. Names that start with w are conditions. */
function graphOf(said: Said): readonly GraphNode[] {
  const nodes = Object.entries(said).map(([name, after]) =>
    name.startsWith("w")
      ? { name, kind: "when", ref: { $ref: ["input"] }, is: "exists", after }
      : { name, kind: "task", type: "t", after },
  );
  return readGraph({ version: 1, name: "test", nodes }).nodes;
}

const arrows = (said: Said): string[] =>
  drawnEdges(graphOf(said))
    .map(({ from, to }) => `${from} ${to}`)
    .toSorted();

const yes = { node: "w", on: "then" } as const;

test("a node after a condition and after its branch has an arrow from both", () => {
  expect(arrows({ w: [], a: [yes], b: ["w", "a"] })).toEqual(["a b", "w a", "w b"]);
  // Also if another condition may skip the node between.
  expect(arrows({ w: [], a: [], b: [yes, "a"], c: ["a", "b"] })).toContain("a c");
});

test("an arrow is omitted if a longer path within or after a branch implies it", () => {
  expect(arrows({ w: [], a: [yes], b: [yes, "a"], c: [yes, "a", "b"] })).not.toContain("a c");
  const joined = { w: [], a: [yes], b: ["w", "a"], c: ["b"], d: ["b", "c"] };
  expect(arrows(joined)).not.toContain("b d");
});

test("a failure branch has no arrow from the predecessors of the failed node", () => {
  const failed = { node: "b", on: "failure" } as const;
  expect(arrows({ a: [], b: ["a"], c: [failed, "a"] })).toEqual(["a b", "b c"]);
  // A node after the branch starts without it.
  expect(arrows({ a: [], b: ["a"], c: [failed], d: ["a", "c"] })).toContain("a d");
});

test("an arrow on success is kept beside a dependency on the end of a node", () => {
  expect(arrows({ a: [], b: [{ node: "a", on: "end" }], c: ["a", "b"] })).toContain("a c");
});

const ONS: readonly On[] = ["success", "success", "success", "end", "failure", "then", "else"];

const graphs = fc
  .array(fc.array(fc.tuple(fc.nat(3), fc.constantFrom(...ONS)), { minLength: 1, maxLength: 4 }), {
    minLength: 5,
    maxLength: 8,
  })
  .map((edges) => {
    const names = edges.map((_, i) => (i % 3 === 0 ? `w${i}` : `n${i}`));
    const said = edges.map((after, i): Said[string] => {
      const before = new Map(after.map(([back, on]) => [i - 1 - back, on] as const).filter(([n]) => n >= 0));
      return [...before].map(([n, on]) => {
        const node = names[n]!;
        return { node, on: (on === "then" || on === "else") && n % 3 !== 0 ? "success" : on };
      });
    });
    return graphOf(Object.fromEntries(names.map((name, i) => [name, said[i]!])));
  });

/** How the nodes of a run end by the rules of the database. `lot` says how each ends if it runs. */
function play(nodes: readonly GraphNode[], lot: readonly boolean[]): Map<string, string> {
  const ends = new Map<string, string>();
  nodes.forEach(({ name, kind, after }, i) => {
    const fates = after.map(edgeOf).map(({ node, on }) => fateOf(ends.get(node)!, on));
    const plain = fates.filter((_, k) => ["success", "end"].includes(edgeOf(after[k]!).on));
    if (fates.includes("bad")) ends.set(name, "lost");
    else if (fates.includes("unmet") || (plain.length > 0 && !plain.includes("met"))) ends.set(name, "skipped");
    else ends.set(name, kind === "when" ? `succeeded ${lot[i]}` : lot[i] ? "succeeded" : "failed");
  });
  return ends;
}

function fateOf(end: string, on: On): "met" | "neutral" | "bad" | "unmet" {
  if (on === "end") return "met";
  if (end === "lost") return "bad";
  if (on === "failure") return end === "failed" ? "met" : "unmet";
  if (end === "failed") return "bad";
  if (end === "skipped") return on === "success" ? "neutral" : "unmet";
  return on === "success" || end === `succeeded ${on === "then"}` ? "met" : "unmet";
}

/** Whether a path of arrows leads from one node to the other through nodes that ran. */
function leads(drawn: readonly DrawnEdge[], from: string, to: string, ran: Set<string>): boolean {
  const [seen, open] = [new Set([from]), [from]];
  for (const at of open) {
    for (const next of drawn.filter((edge) => edge.from === at).map((edge) => edge.to)) {
      if (next === to) return true;
      if (ran.has(next) && !seen.has(next)) open.push(next);
      seen.add(next);
    }
  }
  return false;
}

test("an arrow of any graph is omitted only if a path of arrows through executed nodes always implies it", () => {
  const lots = fc.array(fc.boolean(), { minLength: 8, maxLength: 8 });
  let leftOut = 0;
  const holds = fc.property(graphs, fc.array(lots, { minLength: 8, maxLength: 8 }), (nodes, all) => {
    const drawn = drawnEdges(nodes);
    const missing = nodes.flatMap(({ name: to, after }) =>
      after
        .map(edgeOf)
        .filter(({ node }) => !drawn.some((edge) => edge.from === node && edge.to === to))
        .map(({ node, on }) => ({ from: node, to, on })),
    );
    leftOut += missing.length;
    for (const lot of all) {
      const ends = play(nodes, lot);
      const ran = new Set([...ends].filter(([, end]) => end !== "lost" && end !== "skipped").map(([name]) => name));
      for (const { from, to, on } of missing) {
        expect(on).toBe("success");
        if (!ran.has(to)) continue;
        expect(ends.get(from)).toMatch(/^succeeded/);
        expect(leads(drawn, from, to, ran)).toBe(true);
      }
    }
  });
  fc.assert(holds, { numRuns: 1_000 });
  expect(leftOut).toBeGreaterThan(100);
});
