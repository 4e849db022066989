import type { Command } from "commander";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { notThere, verb } from "./common.js";

const WORDS = {
  cancelled: "cancelled",
  asked: "running tasks were asked to stop, and no other task starts",
  over: "it had already ended",
};

/** `sluice workflow cancel`: cancels a whole run, in any state. */
export function cancelCommand(): Command {
  return verb("cancel", {
    summary: "cancel a run",
    description:
      "Cancels a run: waiting tasks never start, and running tasks are asked to stop. retry continues the run.",
    examples: ["cancel 12", 'cancel 12 --reason "wrong region"'],
    json: '{"run":"12","answer":"cancelled"}; "asked" while a task still runs, "over" if it had ended',
  })
    .argument("<run>", "the id of the run")
    .option("--reason <text>", "why")
    .action(runCancel);
}

async function runCancel(id: string, flags: Flags & { readonly reason?: string }): Promise<void> {
  const answer = await withClient(flags, (client) => client.run(id).cancel(flags.reason));
  if (answer === "unknown") throw notThere(id);
  printResult({ run: id, answer }, [`run ${id}: ${WORDS[answer]}`], flags.json ?? false);
}
