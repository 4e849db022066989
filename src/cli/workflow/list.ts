import { Option, type Command } from "commander";
import type { RunState } from "../../postgres/workflow/inspect.js";
import { STATES, type RunPage, type RunSearch } from "../../runs/list.js";
import type { RunSummary } from "../../runs/status.js";
import { dim } from "../colors.js";
import { printResult } from "../print.js";
import { timeOf, TIME_HELP } from "../time.js";
import { withClient, type Flags } from "../verb.js";
import { numberOf, verb } from "./common.js";

interface ListFlags extends Flags {
  readonly workflow?: string;
  readonly state?: RunState;
  readonly since?: string;
  readonly task?: string;
  readonly limit: string;
  readonly cursor?: string;
}

/** `sluice workflow list`: lists runs, newest first. */
export function listCommand(): Command {
  return verb("list", {
    summary: "list runs, newest first",
    description: "Lists runs, newest first, page by page.",
    examples: ["list --workflow nightly --state failed", "list --since 1h --limit 1000 --json"],
    json:
      '{"runs":[{"id":"12","workflow":"nightly","state":"failed",...}],"cursor":"12"};' +
      ' "cursor" is null on the last page',
  })
    .option("--workflow <name>", "only runs of this workflow")
    .addOption(new Option("--state <state>", "only runs in this state").choices(STATES))
    .option("--task <id>", "list the fan-outs of this task's handler instead")
    .option("--since <time>", `only runs started since then: ${TIME_HELP}`)
    .option("--limit <n>", "how many to list", "20")
    .option("--cursor <cursor>", "continue after the page that returned this cursor")
    .action(runList);
}

async function runList({ json = false, ...flags }: ListFlags): Promise<void> {
  const { workflow, state, task, since, cursor } = flags;
  const search: RunSearch = {
    limit: numberOf("--limit", flags.limit),
    ...(workflow === undefined ? {} : { workflow }),
    ...(state === undefined ? {} : { state }),
    ...(task === undefined ? {} : { task }),
    ...(since === undefined ? {} : { since: timeOf("--since", since) }),
    ...(cursor === undefined ? {} : { cursor }),
  };
  const page = await withClient(flags, (client) => client.runs(search));
  printResult(page, linesOf(page), json);
}

function linesOf({ runs, cursor }: RunPage): string[] {
  if (runs.length === 0) return ["no runs"];
  const width = Math.max(...runs.map(({ workflow }) => workflow.length));
  const more = cursor === null ? [] : [dim(`more: --cursor ${cursor}`)];
  return [...runs.map((run) => lineOf(run, width)), ...more];
}

function lineOf({ id, workflow, state, createdAt, reason }: RunSummary, width: number): string {
  const why = reason === null ? "" : `  ${reason}`;
  return `${id.padStart(6)}  ${workflow.padEnd(width)}  ${state.padEnd(10)}  ${dim(createdAt.toISOString())}${why}`;
}
