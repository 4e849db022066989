import type { Command } from "commander";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { requireDone, verb } from "./common.js";

/** `sluice workflow resume`. */
export function resumeCommand(): Command {
  return verb("resume", {
    summary: "resume a paused run",
    description: "Resumes a paused run.",
    examples: ["resume 12"],
    json: '{"run":"12","paused":false}',
  })
    .argument("<run>", "the id of the run")
    .action(runResume);
}

async function runResume(id: string, flags: Flags): Promise<void> {
  await withClient(flags, async (client) => {
    const run = client.run(id);
    await requireDone(run, await run.resume());
  });
  printResult({ run: id, paused: false }, [`run ${id}: resumed`], flags.json ?? false);
}
