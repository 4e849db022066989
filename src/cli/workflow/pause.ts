import type { Command } from "commander";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { requireDone, verb } from "./common.js";

/** `sluice workflow pause`. */
export function pauseCommand(): Command {
  return verb("pause", {
    summary: "pause a run",
    description: "Pauses a run: no further node or item starts, and running tasks finish.",
    examples: ["pause 12"],
    json: '{"run":"12","paused":true}',
  })
    .argument("<run>", "the id of the run")
    .action(runPause);
}

async function runPause(id: string, flags: Flags): Promise<void> {
  await withClient(flags, async (client) => {
    const run = client.run(id);
    await requireDone(run, await run.pause());
  });
  printResult({ run: id, paused: true }, [`run ${id}: paused`], flags.json ?? false);
}
