import type { Command } from "commander";
import type { WorkflowSummary } from "../../postgres/workflow/graph.js";
import { dim } from "../colors.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { verb } from "./common.js";

/** `sluice workflow definitions`: lists the workflows that can be started by name. */
export function definitionsCommand(): Command {
  return verb("definitions", {
    summary: "list the declared workflows",
    description: "Lists the declared workflows by name, and how many runs of each have not ended.",
    examples: ["definitions", "definitions --json | jq -r .[].name"],
    json: '[{"name":"nightly","nodes":3,"createdAt":"2030-01-31T00:00:00.000Z","live":2}]',
  }).action(runDefinitions);
}

async function runDefinitions({ json = false, ...flags }: Flags): Promise<void> {
  const workflows = await withClient(flags, (client) => client.workflows());
  printResult(workflows, linesOf(workflows), json);
}

function linesOf(workflows: readonly WorkflowSummary[]): string[] {
  if (workflows.length === 0) return ["no workflows are declared"];
  const width = Math.max(...workflows.map(({ name }) => name.length));
  return workflows.map(({ name, nodes, createdAt, live }) => {
    const size = `${nodes} ${nodes === 1 ? "node" : "nodes"}`;
    return `${name.padEnd(width)}  ${size.padEnd(9)}  ${live} live  ${dim(`since ${createdAt.toISOString()}`)}`;
  });
}
