import type { Command } from "commander";
import { quote } from "../../core/quote.js";
import type { ScheduleStatus } from "../../postgres/schedule.js";
import { dim } from "../colors.js";
import { columns, moment } from "../columns.js";
import { printResult } from "../print.js";
import { verb, withClient, type Flags } from "../verb.js";
import { numberOf } from "../workflow/common.js";
import { stateText, timingText } from "./words.js";

interface ListFlags extends Flags {
  readonly limit: string;
  readonly after?: string;
}

/** `sluice schedules list`. */
export function listCommand(): Command {
  const help = {
    summary: "list schedules with their next ticks",
    description: "Lists schedules by name, page by page: when each ticks, its task, its state and its next tick.",
    examples: ["list", "list --json | jq '.schedules[] | select(.trouble)'"],
    json:
      '{"schedules":[{"name":"nightly","cron":"0 3 * * *","type":"report","paused":false,"nextAt":...,...}],\n' +
      '  "after":null}; "after" is null on the last page',
  };
  return verb("list", help, "schedules ")
    .option("--limit <n>", "how many to list, at most 10000", "100")
    .option("--after <name>", "only names after this one")
    .action(runList);
}

async function runList({ json = false, after, ...flags }: ListFlags): Promise<void> {
  const max = numberOf("--limit", flags.limit);
  const page = { max, ...(after === undefined ? {} : { after }) };
  const schedules = await withClient(flags, (client) => client.schedules.list(page));
  const last = schedules.length === max ? schedules.at(-1)!.name : null;
  printResult({ schedules, after: last }, linesOf(schedules, last), json);
}

const HEAD = ["schedule", "timing", "task", "state", "next"];

function linesOf(schedules: readonly ScheduleStatus[], last: string | null): string[] {
  if (schedules.length === 0) return ["no schedules"];
  const more = last === null ? [] : [dim(`more: --after ${quote(last)}`)];
  return [...columns([HEAD, ...schedules.map(cellsOf)]), ...more];
}

function cellsOf(schedule: ScheduleStatus): string[] {
  const { name, queue, type, nextAt } = schedule;
  return [name, timingText(schedule), `${queue}/${type}`, stateText(schedule), moment(nextAt) ?? "-"];
}
