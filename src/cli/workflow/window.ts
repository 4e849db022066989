import type { Command } from "commander";
import { SluiceError } from "../../core/error.js";
import { quote } from "../../core/quote.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { notThere, numberOf, verb } from "./common.js";

/** `sluice workflow window`: sets how many items of an each run at once. */
export function windowCommand(): Command {
  return verb("window", {
    summary: "change how many items of an each run at once",
    description: "Changes the window of a running each immediately. After a decrease, items that already run finish.",
    examples: ["window 12 sync 10"],
    json: '{"run":"12","node":"sync","window":10}',
  })
    .argument("<run>", "the id of the run")
    .argument("<node>", "the name of the each")
    .argument("<window>", "how many items run at once, at least 1")
    .action(runWindow);
}

async function runWindow(id: string, node: string, text: string, flags: Flags): Promise<void> {
  const window = numberOf("the window", text);
  await withClient(flags, async (client) => {
    const run = client.run(id);
    if (await run.window(node, window)) return;
    if ((await run.status()) === null) throw notThere(id);
    const why = `run ${id} has no running each ${quote(node)} with a window`;
    throw new SluiceError("invalid_option", why, { details: { id, node } });
  });
  const line = `run ${id}: the window of ${node} is now ${window}`;
  printResult({ run: id, node, window }, [line], flags.json ?? false);
}
