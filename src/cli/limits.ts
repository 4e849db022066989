import type { Command } from "commander";
import type { Slots } from "../core/limit.js";
import { quote } from "../core/quote.js";
import type { LimitStatus } from "../postgres/limits.js";
import { dim } from "./colors.js";
import { printResult } from "./print.js";
import { verb, withClient, type Flags } from "./verb.js";
import { numberOf } from "./workflow/common.js";

interface LimitsFlags extends Flags {
  readonly limit: string;
  readonly after?: string;
  readonly prefix?: string;
}

/** `sluice limits`: the numbers in force, page by page. */
export function limitsCommand(): Command {
  return verb("limits", {
    summary: "list limits and groups, by name",
    description:
      "Lists limits, and the groups that enqueues have created, sorted by name and page by page: the numbers in\n" +
      "force and the slots in use. A limit per key shows its fullest key.",
    examples: ["limits", "limits --prefix tenant- --limit 1000 --json", "limits --after tenant-0999"],
    json:
      '{"limits":[{"name":"mail","total":10,"used":3,"overridden":false}],"after":"mail"};' +
      ' "after" is null on the last page',
  })
    .option("--limit <n>", "how many to list, at most 1000", "100")
    .option("--after <name>", "only names after this one")
    .option("--prefix <text>", "only names that begin with this")
    .action(runLimits);
}

async function runLimits({ json = false, ...flags }: LimitsFlags): Promise<void> {
  const { after, prefix } = flags;
  const limit = numberOf("--limit", flags.limit);
  const page = {
    limit,
    ...(after === undefined ? {} : { after }),
    ...(prefix === undefined ? {} : { prefix }),
  };
  const limits = await withClient(flags, (client) => client.limits.list(page));
  const last = limits.length === limit ? limits.at(-1)!.name : null;
  printResult({ limits, after: last }, linesOf(limits, last), json);
}

function linesOf(limits: readonly LimitStatus[], last: string | null): string[] {
  if (limits.length === 0) return ["no limits"];
  const width = Math.max(...limits.map(({ name }) => name.length));
  const more = last === null ? [] : [dim(`more: --after ${quote(last)}`)];
  return [...limits.map((limit) => lineOf(limit, width)), ...more];
}

function lineOf({ name, total, perKey, overridden, ...at }: LimitStatus, width: number): string {
  const said = [
    ...(total === undefined ? [] : [`${at.used} of ${slots(total)}`]),
    ...(perKey === undefined ? [] : [`${at.keysInUse} keys, the fullest with ${at.usedMax} of ${slots(perKey)}`]),
    ...(overridden ? ["set by an operator"] : []),
  ];
  return `${name.padEnd(width)}  ${said.join(", ")}`;
}

function slots(n: Slots): string {
  return n === null ? "no limit" : String(n);
}
