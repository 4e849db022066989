import type { Command } from "commander";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { notThere, verb } from "./common.js";
import { follow } from "./follow.js";
import { viewOf } from "./view.js";

/** `sluice workflow status`: shows a run and its nodes, once or live. */
export function statusCommand(): Command {
  return verb("status", {
    summary: "show a run and its nodes",
    description:
      "Shows a run and its nodes. With --watch the view is redrawn on every change until the run ends; without\n" +
      "a terminal, changes are printed line by line.",
    examples: ["status 12", "status 12 --watch", "status 12 --watch --json | jq .progress"],
    json: '{"id":"12","workflow":"nightly","state":"running","progress":0.5,"nodes":[...],...}, one line per status',
  })
    .argument("<run>", "the id of the run")
    .option("--watch", "show the run until it ends; exit with 1 if it fails")
    .action(runStatus);
}

async function runStatus(id: string, flags: Flags & { readonly watch?: boolean }): Promise<void> {
  const { json = false, watch = false } = flags;
  await withClient(flags, async (client) => {
    const run = client.run(id);
    if (watch) return follow(run, json, process.stdout);
    const status = await run.status();
    if (status === null) throw notThere(id);
    printResult(status, viewOf(status), json);
  });
}
