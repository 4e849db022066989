import type { Command } from "commander";
import { readGraph } from "../../workflow/read.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { jsonOf, verb } from "./common.js";

/** `sluice workflow declare`: stores a graph that is written as data. */
export function declareCommand(): Command {
  return verb("declare", {
    summary: "store a workflow written as JSON",
    description:
      "Stores a graph as the newest of its name, which start uses from then on. The tasks that it names must\n" +
      "have been declared, by a worker that serves them or by sync at a deploy.",
    examples: ["declare nightly.json", "declare - < nightly.json"],
    json: '{"workflow":"nightly","nodes":3}',
  })
    .argument("<file>", "the graph as JSON; - reads standard input")
    .action(runDeclare);
}

async function runDeclare(file: string, flags: Flags): Promise<void> {
  const graph = readGraph(jsonOf("the file", `@${file}`));
  await withClient(flags, (client) => client.sync([graph]));
  const { name, nodes } = graph;
  const line = `declared ${name}, ${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}`;
  printResult({ workflow: name, nodes: nodes.length }, [line], flags.json ?? false);
}
