import { writeFileSync } from "node:fs";
import { Option, type Command } from "commander";
import type { Client } from "../../client/client.js";
import { SluiceError } from "../../core/error.js";
import { quote } from "../../core/quote.js";
import type { Graph } from "../../workflow/graph.js";
import { graphToMermaid } from "../../workflow/mermaid.js";
import type { GraphStatus } from "../../workflow/picture.js";
import { graphToSvg } from "../../workflow/svg.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { notThere, verb } from "./common.js";

interface GraphFlags extends Flags {
  readonly format: "mermaid" | "svg";
  readonly out?: string;
}

interface Drawn {
  readonly graph: Graph;
  readonly status: GraphStatus;
}

/** `sluice workflow graph`: draws a workflow, or a run of it with its states. */
export function graphCommand(): Command {
  return verb("graph", {
    summary: "draw a workflow, or a run with the states of its nodes",
    description:
      "Draws the newest workflow of a name, or a run with its nodes in the colours of their states. An\n" +
      "argument of digits only is the id of a run.",
    examples: ["graph nightly", "graph 12 --format svg --out run.svg"],
    json: '{"graph":{...},"status":{"list":{"state":"succeeded",...},...}}; with --out {"file":"run.svg"}',
  })
    .argument("<name or run>", "the name of a workflow, or the id of a run")
    .addOption(new Option("--format <format>", "the output format").choices(["mermaid", "svg"]).default("mermaid"))
    .option("--out <file>", "the output file; default: standard output")
    .action(runGraph);
}

async function runGraph(which: string, flags: GraphFlags): Promise<void> {
  const { format, out, json = false } = flags;
  const drawn = await withClient(flags, (client) =>
    /^\d+$/.test(which) ? ofRun(client, which) : ofName(client, which),
  );
  const draw = format === "svg" ? graphToSvg : graphToMermaid;
  const text = draw(drawn.graph, drawn.status);
  if (out === undefined) return printResult(drawn, [text.trimEnd()], json);
  write(out, text);
  printResult({ file: out }, [`wrote ${out}`], json);
}

async function ofName(client: Client, name: string): Promise<Drawn> {
  const graph = await client.workflowGraph(name);
  if (graph !== null) return { graph, status: {} };
  throw new SluiceError("unknown_workflow", `no workflow named ${quote(name)} was ever declared`);
}

async function ofRun(client: Client, id: string): Promise<Drawn> {
  const run = client.run(id);
  const [graph, status] = [await run.graph(), await run.status()];
  if (graph === null || status === null) throw notThere(id);
  const nodes = status.nodes.map(({ name, state, counts }) => [name, { state, counts }]);
  return { graph, status: Object.fromEntries(nodes) as GraphStatus };
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (cause) {
    throw new SluiceError("invalid_option", `--out: ${(cause as Error).message}`, { cause });
  }
}
