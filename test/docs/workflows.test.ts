import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { graphToMermaid, graphToSvg, readGraph, type GraphStatus } from "../../src/index.js";
import { fulfil, nightly } from "./workflows.page.js";

const textOf = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = textOf("docs/start/workflows.md");
const blocksOf = (language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "g"))].map(([, b]) => b!);

test("the workflows page shows exactly the definitions that these tests run", () => {
  const tested = textOf("test/docs/workflows.page.ts").replace('"../../src/index.js"', '"sluice"');
  const definitions = blocksOf("ts").filter((block) => / (task|workflow)\("/.test(block));
  expect(definitions.length).toBe(6);
  for (const block of definitions) expect(tested).toContain(block.trimEnd());
});

test("the JSON on the workflows page is the graph of its workflow", () => {
  const [data] = blocksOf("json");
  expect(readGraph(JSON.parse(data!))).toEqual(nightly.graph);
});

test("the Mermaid text on the workflows page matches its workflow", () => {
  expect(blocksOf("mermaid")[0]).toBe(graphToMermaid(nightly.graph));
});

const running: GraphStatus = {
  reserve: { state: "succeeded" },
  large: { state: "succeeded" },
  approval: { state: "skipped" },
  "give up": { state: "skipped" },
  charge: { state: "succeeded" },
  release: { state: "skipped" },
  pack: { state: "running", counts: { total: 8, succeeded: 5, failed: 0, cancelled: 0 } },
  pause: { state: "pending" },
  ship: { state: "pending" },
};

test.each([
  ["nightly", graphToSvg(nightly.graph)],
  ["fulfil", graphToSvg(fulfil.graph)],
  ["fulfil-running", graphToSvg(fulfil.graph, running)],
])("the picture %s on the workflows page matches its workflow", async (name, svg) => {
  expect(page).toContain(`pictures/${name}.svg`);
  // vitest -u redraws it.
  await expect(svg).toMatchFileSnapshot(`../../docs/start/pictures/${name}.svg`);
});
