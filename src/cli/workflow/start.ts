import { green } from "../colors.js";
import type { Command } from "commander";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { jsonOf, verb } from "./common.js";
import { follow } from "./follow.js";

interface StartFlags extends Flags {
  readonly input?: string;
  readonly key?: string;
  readonly watch?: boolean;
}

/** `sluice workflow start`: starts a run of the graph that was last declared under a name. */
export function startCommand(): Command {
  return verb("start", {
    summary: "start a run",
    description:
      "Starts a run of the newest workflow of this name.\n" +
      "The input is not validated: only programs that have the definition can do that.",
    examples: [
      'start nightly --input \'{"region":"eu"}\'',
      "start nightly --input @input.json --key 2030-01-31 --watch",
    ],
    json: '{"run":"12","existed":false}, then with --watch one line per status',
  })
    .argument("<name>", "the name of the workflow")
    .option("--input <json>", "the input as JSON, or @file, or @- for standard input")
    .option("--key <key>", "an idempotency key: a second start with the same key returns the first run")
    .option("--watch", "show the run until it ends; exit with 1 if it fails")
    .action(runStart);
}

async function runStart(name: string, flags: StartFlags): Promise<void> {
  const { key, json = false } = flags;
  const input = jsonOf("--input", flags.input);
  await withClient(flags, async (client) => {
    const options = key === undefined ? {} : { idempotencyKey: key };
    const run = await client.start(name, input, options);
    const { id, existed } = run;
    const line = existed ? `run ${id} already exists` : `${green("started")} run ${id}`;
    printResult({ run: id, existed }, [line], json);
    if (flags.watch === true) await follow(run, json, process.stdout);
  });
}
