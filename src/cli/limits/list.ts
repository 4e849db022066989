import type { Command } from "commander";
import { SluiceError } from "../../core/error.js";
import { didYouMean } from "../../core/near.js";
import { quote } from "../../core/quote.js";
import type { LimitStatus } from "../../postgres/limits.js";
import { dim } from "../colors.js";
import { printResult } from "../print.js";
import { verb, withClient, type Flags } from "../verb.js";
import { usesOf } from "./words.js";
import { numberOf } from "../workflow/common.js";

interface ListFlags extends Flags {
  readonly limit: string;
  readonly after?: string;
  readonly prefix?: string;
}

/** `sluice limits list`, and `sluice limits`: the numbers in force, page by page. */
export function listCommand(): Command {
  return (
    verb("list", {
      summary: "list limits and groups, by name",
      description:
        "Lists limits, and the groups that enqueues have created, sorted by name and page by page: the numbers in\n" +
        "force and the slots in use. A limit per key shows its fullest key.",
      examples: ["limits", "limits list --prefix tenant- --limit 1000 --json", "limits list --after tenant-0999"],
      json:
        '{"limits":[{"name":"mail","total":10,"used":3,"overridden":false}],"after":"mail"};' +
        ' "after" is null on the last page',
    })
      .option("--limit <n>", "how many to list, at most 1000", "100")
      .option("--after <name>", "only names after this one")
      .option("--prefix <text>", "only names that begin with this")
      // A verb that does not exist arrives here, because the list is the default.
      .allowExcessArguments()
      .action(runList)
  );
}

async function runList({ json = false, ...flags }: ListFlags, command: Command): Promise<void> {
  const [unknown] = command.args;
  if (unknown !== undefined) throw noSuchVerb(unknown, command.parent!);
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

function noSuchVerb(name: string, { commands }: Command): SluiceError {
  const verbs = commands.map((each) => each.name());
  if (verbs.includes(name)) return new SluiceError("invalid_option", `put the verb first: sluice limits ${name} ...`);
  const near = didYouMean(name, verbs);
  return new SluiceError("invalid_option", `there is no sluice limits ${name}; there are ${verbs.join(", ")}${near}`);
}

function linesOf(limits: readonly LimitStatus[], last: string | null): string[] {
  if (limits.length === 0) return ["no limits"];
  const width = Math.max(...limits.map(({ name }) => name.length));
  const more = last === null ? [] : [dim(`more: --after ${quote(last)}`)];
  return [...limits.map((limit) => lineOf(limit, width)), ...more];
}

function lineOf(limit: LimitStatus, width: number): string {
  const { total, perKey } = usesOf(limit);
  const said = [total, perKey, limit.overridden ? "set by an operator" : null].filter((part) => part !== null);
  return `${limit.name.padEnd(width)}  ${said.join(", ")}`;
}
