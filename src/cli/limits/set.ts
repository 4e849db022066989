import type { Command } from "commander";
import type { Client } from "../../client/client.js";
import { SluiceError } from "../../core/error.js";
import { quote } from "../../core/quote.js";
import type { LimitChange, LimitStatus } from "../../postgres/limits.js";
import { confirmed, withYes, type YesFlag } from "../confirm.js";
import { printResult } from "../print.js";
import { verb, withClient, type Flags } from "../verb.js";
import { numberOf } from "../workflow/common.js";
import { slotsText } from "./words.js";

interface SetFlags extends Flags {
  readonly total?: string;
  readonly perKey?: string;
}

/** `sluice limits set`: overrides the numbers of a limit. */
export function setCommand(): Command {
  const help = {
    summary: "override the numbers of a limit",
    description:
      "Overrides the numbers of a limit: immediately, for all processes, and across deploys. 0 lets no task start.\n" +
      "Running tasks finish, also above a lower number. reset brings the numbers in code back.",
    examples: ["set mail --total 7", "set tenant --per-key 2 --json", "set mail --total 0"],
    json: '{"name":"mail","total":7,"overridden":true,"declared":{"total":5},"used":3}',
  };
  return verb("set", help, "limits ")
    .argument("<limit>", "the name of the limit")
    .option("--total <n>", "slots in all")
    .option("--per-key <n>", "slots of each key")
    .action(runSet);
}

/** `sluice limits lift`: takes the numbers of a limit away. */
export function liftCommand(): Command {
  const help = {
    summary: "let any number of tasks pass a limit",
    description:
      "Takes the numbers of a limit away, so that any number of its tasks run at once: immediately, for all processes,\n" +
      "and across deploys. reset brings the numbers in code back.",
    examples: ["lift mail", "lift mail --yes --json"],
    json: '{"name":"mail","total":null,"overridden":true,"declared":{"total":5},"used":3}',
  };
  const command = verb("lift", help, "limits ").argument("<limit>", "the name of the limit");
  return withYes(command).action(runLift);
}

/** `sluice limits reset`: the declared numbers count again. */
export function resetCommand(): Command {
  const help = {
    summary: "bring the numbers in code back",
    description: "Removes what set or lift have changed: the numbers declared in code count again.",
    examples: ["reset mail"],
    json: '{"name":"mail","total":5,"overridden":false,"declared":{"total":5},"used":3}',
  };
  return verb("reset", help, "limits ").argument("<limit>", "the name of the limit").action(runReset);
}

async function runSet(name: string, flags: SetFlags): Promise<void> {
  const { total, perKey } = flags;
  if (total === undefined && perKey === undefined) throw misused("pass --total, --per-key, or both");
  const change = {
    ...(total === undefined ? {} : { total: numberOf("--total", total) }),
    ...(perKey === undefined ? {} : { perKey: numberOf("--per-key", perKey) }),
  };
  await run(name, flags, (client) => client.limits.set(name, change));
}

async function runLift(name: string, flags: Flags & YesFlag): Promise<void> {
  if (!(await confirmed(`lift limit ${quote(name)}, so that any number of its tasks run at once?`, flags))) return;
  await run(name, flags, (client) => setParts(client, name, null));
}

async function runReset(name: string, flags: Flags): Promise<void> {
  await run(name, flags, (client) => setParts(client, name, "declared"));
}

/** Sets the parts that the limit has. */
async function setParts(client: Client, name: string, to: null | "declared"): Promise<void> {
  const { total, perKey } = await client.limits.get(name);
  const change: LimitChange = {
    ...(total === undefined ? {} : { total: to }),
    ...(perKey === undefined ? {} : { perKey: to }),
  };
  await client.limits.set(name, change);
}

async function run(name: string, flags: Flags, change: (client: Client) => Promise<void>): Promise<void> {
  const status = await withClient(flags, async (client) => {
    await change(client);
    return client.limits.get(name);
  });
  printResult(status, [`limit ${name}: ${wordsOf(status)}`], flags.json ?? false);
}

function wordsOf({ total, perKey, overridden }: LimitStatus): string {
  const parts = [
    ...(total === undefined ? [] : [`total ${slotsText(total)}`]),
    ...(perKey === undefined ? [] : [`per key ${slotsText(perKey)}`]),
  ];
  return `${parts.join(", ")}${overridden ? "" : ", as declared in code"}`;
}

function misused(message: string): SluiceError {
  return new SluiceError("invalid_option", message);
}
