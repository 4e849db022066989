import type { Command } from "commander";
import type { WorkerSummary } from "../postgres/workers.js";
import { dim } from "./colors.js";
import { columns, span } from "./columns.js";
import { printResult } from "./print.js";
import { group, verb, withClient, type Flags } from "./verb.js";
import { numberOf } from "./workflow/common.js";

/** `sluice workers`: the workers of all processes. */
export function workersCommand(): Command {
  return group(
    "workers",
    {
      summary: "list workers with their load",
      description: "Lists the workers of all processes.",
      examples: ["list", "list --json | jq '.workers[] | select(.state != \"live\")'"],
    },
    [listCommand()],
  );
}

function listCommand(): Command {
  const help = {
    summary: "list workers with their capacity, memory and pressure",
    description:
      "Lists the workers of all processes by name, as of their last heartbeats: the tasks that each holds and can hold,\n" +
      "its memory, what reduces or stops its claims, how long its lease lasts, and the types that it serves.",
    examples: ["list", "list --json | jq '.workers[].pressure'"],
    json:
      '{"workers":[{"id":"...","name":"web-1","state":"live","capacity":50,"inUse":3,"memoryBytes":...,\n' +
      '  "pressure":{"state":"normal","reasons":[]},"serves":[{"queue":"mail","type":"send"}],"leaseUntil":...,...}]}',
  };
  return verb("list", help, "workers ")
    .option("--limit <n>", "how many to list, at most 10000", "1000")
    .action(runList);
}

async function runList({ json = false, ...flags }: Flags & { readonly limit: string }): Promise<void> {
  const limit = numberOf("--limit", flags.limit);
  const workers = await withClient(flags, (client) => client.workers.list({ limit }));
  const more = workers.length === limit ? [dim(`there may be more than ${limit}: --limit`)] : [];
  printResult({ workers }, [...linesOf(workers), ...more], json);
}

const HEAD = ["worker", "state", "tasks", "memory", "lease", "pressure", "serves"];

function linesOf(workers: readonly WorkerSummary[]): string[] {
  return workers.length === 0 ? ["no workers"] : columns([HEAD, ...workers.map(cellsOf)]);
}

function cellsOf({ name, state, inUse, capacity, memoryBytes, pressure, serves, ...times }: WorkerSummary): string[] {
  const leftMs = times.leaseUntil.getTime() - times.at.getTime();
  return [
    name,
    state,
    `${inUse} of ${capacity}`,
    `${Math.round(memoryBytes / 2 ** 20)} MiB`,
    leftMs > 0 ? span(leftMs) : "expired",
    [pressure.state, ...(pressure.reasons.length > 0 ? [`(${pressure.reasons.join(", ")})`] : [])].join(" "),
    serves.map(({ queue, type }) => `${queue}/${type}`).join(", "),
  ];
}
