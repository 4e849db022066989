import type { Command } from "commander";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { jsonOf, requireDone, verb } from "./common.js";

interface SendFlags extends Flags {
  readonly payload?: string;
}

/** `sluice workflow send`: sends an event to a run. */
export function sendCommand(): Command {
  return verb("send", {
    summary: "send an event to a run",
    description:
      "Sends an event to a run. One node that waits for it, now or later, receives it.\n" +
      "The payload is not validated: only programs that have the definition can do that.",
    examples: ['send 12 approved --payload \'{"by":"ada"}\'', "send 12 approved --payload @by.json"],
    json: '{"run":"12","event":"approved"}',
  })
    .argument("<run>", "the id of the run")
    .argument("<event>", "the name of the event")
    .option("--payload <json>", "JSON, or @file, or @- for standard input; default: null")
    .action(runSend);
}

async function runSend(id: string, event: string, flags: SendFlags): Promise<void> {
  const payload = jsonOf("--payload", flags.payload);
  await withClient(flags, async (client) => {
    const run = client.run(id);
    await requireDone(run, await run.send(event, payload));
  });
  printResult({ run: id, event }, [`run ${id}: sent ${event}`], flags.json ?? false);
}
