import type { Command } from "commander";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { noSuchTasks, taskId, verb } from "./common.js";

/** `sluice tasks unblock`: lets an order key continue without the failed task that blocks it. */
export function unblockCommand(): Command {
  return verb("unblock", {
    summary: "let an order key continue without the failed task that blocks it",
    description:
      "Lets an order key that is blocked by a failed task continue without that task, which stays failed. To run the\n" +
      "task before the others instead, use retry.",
    examples: ["unblock 4711"],
    json: '{"task":"4711","unblocked":true}; false if the task blocks no order key',
  })
    .argument("<task>", "the id of the task")
    .action(runUnblock);
}

async function runUnblock(given: string, flags: Flags): Promise<void> {
  const id = taskId(given);
  const unblocked = await withClient(flags, async (client) => {
    if (await client.unblock(id)) return true;
    if ((await client.task(id).status()) === null) throw noSuchTasks([id]);
    return false;
  });
  const line = unblocked ? "its order key continues without it" : "it blocks no order key";
  printResult({ task: id, unblocked }, [`task ${id}: ${line}`], flags.json ?? false);
}
