import type { Command } from "commander";
import type { Slots } from "../../core/limit.js";
import { quote } from "../../core/quote.js";
import type { LimitHolder } from "../../postgres/limit-holders.js";
import type { LimitStatus } from "../../postgres/limits.js";
import { details } from "../columns.js";
import { printResult } from "../print.js";
import { verb, withClient, type Flags } from "../verb.js";
import { numberOf } from "../workflow/common.js";
import { slotsText, usesOf } from "./words.js";

/** `sluice limits show`: one limit, its numbers in code and in force, and the tasks that hold its slots. */
export function showCommand(): Command {
  const help = {
    summary: "show a limit and the tasks that hold its slots",
    description:
      "Shows the numbers of a limit that are in force and those declared in code, the slots in use, and the running\n" +
      "tasks that hold them, longest-running first. For tasks that wait at the limit, see sluice explain.",
    examples: ["show mail", "show tenant --holders 100 --json | jq .holders"],
    json:
      '{"name":"mail","total":7,"overridden":true,"declared":{"total":5},"used":3,...,\n' +
      '  "holders":[{"task":"4711","type":"send","queue":"mail","key":null,"since":...,"worker":"web-1"}]}',
  };
  return verb("show", help, "limits ")
    .argument("<limit>", "the name of the limit")
    .option("--holders <n>", "how many holders to list, at most 1000", "10")
    .action(runShow);
}

async function runShow(name: string, flags: Flags & { readonly holders: string }): Promise<void> {
  const limit = numberOf("--holders", flags.holders);
  await withClient(flags, async (client) => {
    const status = await client.limits.get(name);
    const holders = await client.limits.holders(name, { limit });
    printResult({ ...status, holders }, viewOf(status, holders), flags.json ?? false);
  });
}

function viewOf(status: LimitStatus, holders: readonly LimitHolder[]): string[] {
  const { total, perKey } = usesOf(status);
  const shown = holders.map((holder, i) => [i === 0 ? "held by" : "", holderText(holder)] as const);
  return details(`limit ${status.name}${status.overridden ? ", set by an operator" : ""}`, [
    ["total", total === null ? null : total + differing(status.total, status.declared.total)],
    ["per key", perKey === null ? null : perKey + differing(status.perKey, status.declared.perKey)],
    ...shown,
  ]);
}

function differing(inForce: Slots | undefined, declared: Slots | undefined): string {
  return inForce === declared || declared === undefined ? "" : ` (declared: ${slotsText(declared)})`;
}

function holderText({ task, type, key, since, worker }: LimitHolder): string {
  const at = key === null ? "" : `, key ${quote(key)}`;
  const on = worker === null ? "" : ` on ${worker}`;
  return `task ${task} (${type}${at}), running since ${since.toISOString()}${on}`;
}
