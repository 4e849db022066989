import type { Command } from "commander";
import type { ScheduleStatus } from "../../postgres/schedule.js";
import { details, moment } from "../columns.js";
import { printResult } from "../print.js";
import { verb, withClient, type Flags } from "../verb.js";
import { oneLine } from "../workflow/view.js";
import { stateText, timingText } from "./words.js";

/** `sluice schedules show`. */
export function showCommand(): Command {
  const help = {
    summary: "show a schedule",
    description: "Shows a schedule: when it ticks, its task, its last and next tick, and why the last one failed.",
    examples: ["show nightly", "show nightly --json | jq .nextAt"],
    json: '{"name":"nightly","cron":"0 3 * * *","type":"report","paused":false,"nextAt":...,"trouble":null,...}',
  };
  return verb("show", help, "schedules ").argument("<schedule>", "the name of the schedule").action(runShow);
}

async function runShow(name: string, flags: Flags): Promise<void> {
  const status = await withClient(flags, (client) => client.schedules.get(name));
  printResult(status, viewOf(status), flags.json ?? false);
}

function viewOf(status: ScheduleStatus): string[] {
  const { name, type, queue, missed, lastTaskId, lastAt, nextAt, trouble } = status;
  return details(`schedule ${name}: ${type} in queue ${queue}, ${stateText(status)}`, [
    ["timing", timingText(status)],
    ["missed", missed],
    ["last", lastAt === null ? null : `${moment(lastAt)}, task ${lastTaskId}`],
    ["next", moment(nextAt)],
    ["trouble", trouble === null ? null : oneLine(trouble)],
  ]);
}
