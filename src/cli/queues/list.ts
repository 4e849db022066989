import type { Command } from "commander";
import { quote } from "../../core/quote.js";
import type { QueueSummary, TaskCount } from "../../postgres/queues.js";
import { dim } from "../colors.js";
import { columns, span } from "../columns.js";
import { printResult } from "../print.js";
import { verb, withClient, type Flags } from "../verb.js";
import { numberOf } from "../workflow/common.js";

interface ListFlags extends Flags {
  readonly limit: string;
  readonly after?: string;
}

/** `sluice queues list`: the backlog of every queue. */
export function listCommand(): Command {
  const help = {
    summary: "list queues with their tasks by state",
    description:
      "Lists queues by name: the tasks that have not ended by state, since when the oldest of them could run, the\n" +
      'live workers, and whether the queue is paused. Counts stop early: "1000+" means that there may be more.',
    examples: ["list", "list --json | jq '.queues[] | select(.workers == 0)'"],
    json:
      '{"queues":[{"name":"mail","paused":false,"tasks":{"ready":{"count":3,"more":false},...},"oldestAt":...,\n' +
      '  "workers":2,...}],"after":null}; "after" is null on the last page',
  };
  return verb("list", help, "queues ")
    .option("--limit <n>", "how many to list, at most 1000", "100")
    .option("--after <name>", "only names after this one")
    .action(runList);
}

async function runList({ json = false, after, ...flags }: ListFlags): Promise<void> {
  const limit = numberOf("--limit", flags.limit);
  const page = { limit, ...(after === undefined ? {} : { after }) };
  const queues = await withClient(flags, (client) => client.queues.list(page));
  const last = queues.length === limit ? queues.at(-1)!.name : null;
  printResult({ queues, after: last }, linesOf(queues, last), json);
}

const HEAD = ["queue", "scheduled", "waiting", "ready", "running", "oldest", "workers", ""];

function linesOf(queues: readonly QueueSummary[], last: string | null): string[] {
  if (queues.length === 0) return ["no queues"];
  const more = last === null ? [] : [dim(`more: --after ${quote(last)}`)];
  return [...columns([HEAD, ...queues.map(cellsOf)]), ...more];
}

function cellsOf({ name, paused, tasks, oldestAt, workers, at }: QueueSummary): string[] {
  const { scheduled, waiting, ready, running } = tasks;
  const age = oldestAt === null ? "-" : span(at.getTime() - oldestAt.getTime());
  return [name, ...[scheduled, waiting, ready, running].map(countText), age, String(workers), paused ? "paused" : ""];
}

function countText({ count, more }: TaskCount): string {
  return `${count}${more ? "+" : ""}`;
}
