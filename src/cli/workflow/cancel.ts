import type { Command } from "commander";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { notThere, verb } from "./common.js";

const WORDS = {
  cancelled: "cancelled",
  asked: "what runs was asked to stop, and nothing begins any more",
  over: "it was over already",
};

/** `sluice workflow cancel`: cancels a whole run, in any state. */
export function cancelCommand(): Command {
  return verb("cancel", {
    summary: "cancel a run",
    description: "Cancels a run: what waits never begins, what runs hears of it. A retry brings it back.",
    examples: ["cancel 12", 'cancel 12 --reason "wrong region"'],
    json: '{"run":"12","answer":"cancelled"}; or "asked" while something still runs, or "over"',
  })
    .argument("<run>", "its id")
    .option("--reason <text>", "why")
    .action(runCancel);
}

async function runCancel(id: string, flags: Flags & { readonly reason?: string }): Promise<void> {
  const answer = await withClient(flags, (client) => client.run(id).cancel(flags.reason));
  if (answer === "unknown") throw notThere(id);
  printResult({ run: id, answer }, [`run ${id}: ${WORDS[answer]}`], flags.json ?? false);
}
