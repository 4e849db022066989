import type { Command } from "commander";
import { printResult } from "../print.js";
import { notThere, verb, withClient, type Flags } from "./common.js";

/** `sluice workflow retry`: again from what failed. */
export function retryCommand(): Command {
  return verb("retry", {
    summary: "run again from the nodes that failed or were cancelled",
    description:
      "Runs again from the nodes that failed or were cancelled; of an each only those items. What has\n" +
      "succeeded is kept.",
    examples: ["retry 12"],
    json: '{"run":"12","nodes":1}: how many nodes, 0 if none had failed',
  })
    .argument("<run>", "its id")
    .action(runRetry);
}

async function runRetry(id: string, flags: Flags): Promise<void> {
  const nodes = await withClient(flags, async (client) => {
    const run = client.run(id);
    const again = await run.retry();
    if (again === 0 && (await run.status()) === null) throw notThere(id);
    return again;
  });
  const line = nodes === 0 ? "nothing has failed" : `${nodes} of its nodes run again`;
  printResult({ run: id, nodes }, [`run ${id}: ${line}`], flags.json ?? false);
}
