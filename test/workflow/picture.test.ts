import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type } from "../../src/client.js";
import type { Graph } from "../../src/workflow/graph.js";
import { layOut } from "../../src/workflow/layout.js";
import { graphToMermaid } from "../../src/workflow/mermaid.js";
import { COLOURS, type GraphStatus } from "../../src/workflow/picture.js";
import { readGraph } from "../../src/workflow/read.js";
import { graphToSvg } from "../../src/workflow/svg.js";
import { workflow } from "../../src/workflow/workflow.js";
import { listAccounts, report, syncAccount, tick } from "./tasks.js";

const { graph: order } = workflow("order", { input: type<{ total: number }>() }, (w, input) => {
  const list = w.task("list", listAccounts, { region: "eu" });
  const large = w.when(
    "large",
    input.total,
    { above: 1_000 },
    (b) => b.waitFor("approval", "approved", { timeoutMs: 60_000 }),
    (b) => b.sleep("cool", 7_200_000),
  );
  const sync = w.each("sync", syncAccount, list.accounts, (account) => ({ account }), {
    window: 3,
  });
  w.sequence("ship it", (s) => {
    s.task("pack", report, { synced: sync.results, list }, { after: [large] });
    s.task("ship", tick);
  });
  w.onFailure(sync, (f) => void f.task("undo", tick));
});

const status: GraphStatus = {
  list: { state: "succeeded" },
  sync: { state: "running", counts: { total: 20, succeeded: 9, failed: 2, cancelled: 1 } },
  approval: { state: "skipped" },
};

/** A graph of tasks by their dependencies. */
function graphOf(nodes: Record<string, readonly string[]>): Graph {
  const data = Object.entries(nodes).map(([name, after]) => ({
    name,
    kind: "task",
    type: "t",
    after,
  }));
  return readGraph({ version: 1, name: "test", nodes: data });
}

test("the Mermaid text of a workflow shows kinds of nodes, labels of edges, sequences and states", () => {
  expect(graphToMermaid(order, status)).toBe(`flowchart LR
  n1("list<br/>list-accounts")
  n2{{"large<br/>input.total above 1000"}}
  n3(["approval<br/>event approved"])
  n4(["cool<br/>2 h"])
  n5[["sync<br/>sync-account, window 3<br/>12/20, 2 failed"]]
  subgraph s1["ship it"]
    n6("pack<br/>report")
    n7("ship<br/>tick")
  end
  n8("undo<br/>tick")
  n2 -->|yes| n3
  n2 -->|no| n4
  n1 --> n5
  n3 --> n6
  n4 --> n6
  n5 --> n6
  n2 --> n6
  n5 -.->|failed| n8
  n6 --> n7
  classDef succeeded fill:#dafbe1,stroke:#1a7f37,color:#116329
  class n1 succeeded
  classDef none fill:#f6f8fa,stroke:#57606a,color:#1f2328
  class n2,n4,n6,n7,n8 none
  classDef skipped fill:#f6f8fa,stroke:#afb8c1,color:#8c959f
  class n3 skipped
  classDef running fill:#ddf4ff,stroke:#0969da,color:#0a3069
  class n5 running
`);
});

test("the SVG of a workflow colours nodes by state and shows the progress of an each", () => {
  const svg = graphToSvg(order, status);
  const boxes = svg.split("\n").filter((line) => line.startsWith("<g "));
  expect(boxes).toHaveLength(order.nodes.length);
  const boxOf = (name: string): string => boxes.find((box) => box.includes(`>${name}</text>`))!;
  expect(boxOf("list")).toContain(COLOURS.succeeded[0]);
  expect(boxOf("sync")).toContain(COLOURS.running[0]);
  expect(boxOf("sync")).toContain(">12/20, 2 failed</text>");
  expect(boxOf("approval")).toContain("stroke-dasharray");
  expect(boxOf("undo")).toContain(COLOURS.none[0]);
  // 9 of 20 in a bar of 156 pixels, then 3 that did not succeed.
  expect(boxOf("sync")).toContain('width="70" height="4"');
  expect(boxOf("sync")).toContain('width="24" height="4"');
  expect(svg.match(/>(yes|no|failed)<\/text>/g)?.toSorted()).toEqual([">failed</text>", ">no</text>", ">yes</text>"]);
});

describe("unusual names in workflow pictures", () => {
  const odd = `<b> & "quotes" 'x' \`y\` #1; {a} [b] |c| \\`;
  const graph = readGraph({
    version: 1,
    name: odd,
    nodes: [
      { name: odd, kind: "task", type: odd },
      { name: "__proto__", kind: "task", type: "t", after: [odd] },
      { name: "w", kind: "when", ref: { $ref: ["input"] }, is: "equals", value: "\u0001\n" },
    ],
  });

  test("are escaped as text in an SVG", () => {
    const svg = graphToSvg(graph, { [odd]: { state: "failed" } });
    expect(svg).not.toContain("<b>");
    expect(wellFormed(svg)).toBe(true);
    expect(svg).toContain("&lt;b&gt; &amp; &quot;quotes&quot;");
  });

  test("are escaped as text in Mermaid", () => {
    const text = graphToMermaid(graph, { ["__proto__"]: { state: "failed" } });
    const label = /n1\("(.*)<br\/>/.exec(text)![1]!;
    expect(label).toBe(
      "#60;b#62; #38; #34;quotes#34; #39;x#39; #96;y#96; #35;1#59; #123;a#125; #91;b#93; #124;c#124; #92;",
    );
    expect(text.split("\n").filter((line) => line.includes("n2"))).toHaveLength(3);
  });

  test("are shortened to fit and shown in full as a tooltip", () => {
    const name = "a name that has no room in a box at all";
    const svg = graphToSvg(graphOf({ [name]: [] }));
    expect(svg).toContain(">a name that has no …</text>");
    expect(svg).toContain(`<title>${name}, t</title>`);
  });
});

describe("the layout of a workflow picture", () => {
  test("omits an arrow that a longer path implies, and keeps one of another kind", () => {
    const graph = readGraph({
      version: 1,
      name: "test",
      nodes: [
        { name: "a", kind: "task", type: "t" },
        { name: "b", kind: "task", type: "t", after: ["a"] },
        { name: "c", kind: "task", type: "t", after: ["a", "b"] },
        { name: "d", kind: "task", type: "t", after: [{ node: "a", on: "end" }, "c"] },
      ],
    });
    const arrows = layOut(graph.nodes).routes.map(({ from, to, on }) => `${from} ${to} ${on}`);
    expect(arrows.toSorted()).toEqual(["a b success", "a d end", "b c success", "c d success"]);
  });

  test("has arrows to the right, no overlaps and no arrow across a node for any graph", () => {
    const graphs = fc
      .array(fc.array(fc.nat(20), { maxLength: 4 }), { minLength: 1, maxLength: 20 })
      .map((nodes) =>
        graphOf(
          Object.fromEntries(
            nodes.map((after, i) => [`n${i}`, [...new Set(after.filter((n) => n < i))].map((n) => `n${n}`)]),
          ),
        ),
      );
    const holds = fc.property(graphs, (graph) => {
      const { places, routes, levels, rows } = layOut(graph.nodes);
      const spots = [...places.values()];
      for (const { level, y } of spots) {
        expect(level).toBeLessThan(levels);
        expect(y).toBeGreaterThanOrEqual(-1e-9);
        expect(y).toBeLessThanOrEqual(rows - 1 + 1e-9);
      }
      expect(nearest(spots)).toBeGreaterThan(1 - 1e-9);
      for (const { from, to, heights } of routes) {
        expect(heights[0]).toEqual(places.get(from));
        expect(heights.at(-1)).toEqual(places.get(to));
        expect(heights.map(({ level }) => level)).toEqual(heights.map((_, i) => heights[0]!.level + i));
        for (const passed of heights.slice(1, -1)) {
          expect(nearest([passed, ...spots], passed)).toBeGreaterThan(0.7 - 1e-9);
        }
      }
    });
    fc.assert(holds, { numRuns: 300 });
  });

  test("is a chain for 500 nodes that depend on all earlier ones", () => {
    const names = Array.from({ length: 500 }, (_, i) => `n${i}`);
    const graph = graphOf(Object.fromEntries(names.map((name, i) => [name, names.slice(0, i)])));
    const { routes, levels } = layOut(graph.nodes);
    expect(routes).toHaveLength(499);
    expect(levels).toBe(500);
    expect(wellFormed(graphToSvg(graph))).toBe(true);
  });
});

interface Spot {
  readonly level: number;
  readonly y: number;
}

/** The smallest distance between two spots of a column, or of one spot to those after it. */
function nearest(spots: readonly Spot[], one?: Spot): number {
  const distances = spots.flatMap((a, i) =>
    spots
      .slice(i + 1)
      .filter((b) => a.level === b.level && (one === undefined || a === one))
      .map((b) => Math.abs(a.y - b.y)),
  );
  return Math.min(Number.POSITIVE_INFINITY, ...distances);
}

/** Whether all tags are closed in order, and no other text has a < or a bare &. */
function wellFormed(xml: string): boolean {
  const open: string[] = [];
  const rest = xml.replaceAll(/<(\/?)([a-z]+)(?:\s[^<>]*?)?(\/?)>/gi, (_, closes, tag, empty) => {
    if (closes === "/") return open.pop() === tag ? "" : "<";
    if (empty === "") open.push(tag as string);
    return "";
  });
  return open.length === 0 && !/[<>]|&(?!(amp|lt|gt|quot);)/.test(rest);
}
