import type { Command } from "commander";
import { quote } from "../../core/quote.js";
import type { RunStatus } from "../../runs/status.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { notThere, verb } from "./common.js";

/** `sluice workflow retry`: reruns from the nodes that failed. */
export function retryCommand(): Command {
  return verb("retry", {
    summary: "run again from the nodes that failed or were cancelled",
    description:
      "Runs again from the nodes that failed or were cancelled. In an each only the items that did not succeed\n" +
      "run again. Results of successful nodes and items are kept.",
    examples: ["retry 12"],
    json: '{"run":"12","nodes":1}: how many nodes run again, 0 if none had failed',
  })
    .argument("<run>", "the id of the run")
    .action(runRetry);
}

async function runRetry(id: string, flags: Flags): Promise<void> {
  const { nodes, line } = await withClient(flags, async (client) => {
    const run = client.run(id);
    const again = await run.retry();
    if (again > 0) return { nodes: again, line: `${again} ${again === 1 ? "node runs" : "nodes run"} again` };
    const status = await run.status();
    if (status === null) throw notThere(id);
    return { nodes: 0, line: whyNone(status) };
  });
  printResult({ run: id, nodes }, [`run ${id}: ${line}`], flags.json ?? false);
}

/**
 * Explains a retry that finds no node: a node that collects has succeeded, and so has one whose failure was recovered.
 */
function whyNone({ id, state, nodes }: RunStatus): string {
  if (nodes.some((node) => node.state === "failed" || node.state === "cancelled"))
    return "a branch recovered the failure, so nothing runs again";
  const short = nodes.find(({ kind, counts }) => kind === "each" && counts.failed + counts.cancelled > 0);
  if (short === undefined) return state === "succeeded" ? "no node failed" : "no node has failed so far";
  const { name, counts } = short;
  const count = counts.failed + counts.cancelled;
  const what = `${count} ${count === 1 ? "item" : "items"} of ${quote(name)} did not succeed`;
  const why = short.state === "succeeded" ? "which its onError allows" : "but it has not ended";
  const list = `sluice workflow items ${id} ${quote(name)}`;
  return `no node has failed, so nothing runs again. ${what}, ${why}: ${list}`;
}
