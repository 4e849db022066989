import type { Command } from "commander";
import { quote } from "../../core/quote.js";
import { confirmed, withYes, type YesFlag } from "../confirm.js";
import { printResult } from "../print.js";
import { verb as anyVerb, withClient, type Flags, type Help } from "../verb.js";

function verb(name: string, help: Help): Command {
  return anyVerb(name, help, "schedules ").argument("<schedule>", "the name of the schedule");
}

/** `sluice schedules pause`. */
export function pauseCommand(): Command {
  const command = verb("pause", {
    summary: "pause a schedule",
    description: "Pauses a schedule: it enqueues nothing, even across deploys, until it is resumed.",
    examples: ["pause nightly", "pause nightly --yes --json"],
    json: '{"schedule":"nightly","paused":true}',
  });
  return withYes(command).action(runPause);
}

/** `sluice schedules resume`. */
export function resumeCommand(): Command {
  return verb("resume", {
    summary: "resume a schedule",
    description: "Resumes a schedule with its first tick from now. Ticks during the pause do not count as missed.",
    examples: ["resume nightly"],
    json: '{"schedule":"nightly","paused":false,"nextAt":...}',
  }).action(runResume);
}

/** `sluice schedules trigger`. */
export function triggerCommand(): Command {
  return verb("trigger", {
    summary: "enqueue the task of a schedule now",
    description:
      "Enqueues now what a tick would enqueue, even while the schedule is paused. Its regular ticks are not affected.",
    examples: ["trigger nightly", "trigger nightly --json | jq -r .task"],
    json: '{"schedule":"nightly","task":"4711"}',
  }).action(runTrigger);
}

/** `sluice schedules remove`. */
export function removeCommand(): Command {
  const command = verb("remove", {
    summary: "remove a schedule",
    description:
      "Removes a schedule. Tasks that it has enqueued stay. Code that still sets the schedule creates it again at its\n" +
      "next start.",
    examples: ["remove nightly", "remove nightly --yes --json"],
    json: '{"schedule":"nightly","removed":true}',
  });
  return withYes(command).action(runRemove);
}

async function runPause(schedule: string, flags: Flags & YesFlag): Promise<void> {
  if (!(await confirmed(`pause schedule ${quote(schedule)}?`, flags))) return;
  await withClient(flags, (client) => client.schedules.pause(schedule));
  printResult({ schedule, paused: true }, [`schedule ${schedule}: paused`], flags.json ?? false);
}

async function runResume(schedule: string, flags: Flags): Promise<void> {
  const { nextAt } = await withClient(flags, async (client) => {
    await client.schedules.resume(schedule);
    return client.schedules.get(schedule);
  });
  const next = nextAt === null ? "it is disabled in code" : `next tick at ${nextAt.toISOString()}`;
  printResult({ schedule, paused: false, nextAt }, [`schedule ${schedule}: resumed, ${next}`], flags.json ?? false);
}

async function runTrigger(schedule: string, flags: Flags): Promise<void> {
  const { id } = await withClient(flags, (client) => client.schedules.trigger(schedule));
  printResult({ schedule, task: id }, [`schedule ${schedule}: enqueued task ${id}`], flags.json ?? false);
}

async function runRemove(schedule: string, flags: Flags & YesFlag): Promise<void> {
  if (!(await confirmed(`remove schedule ${quote(schedule)}?`, flags))) return;
  await withClient(flags, async (client) => {
    // Throws the error that lists the schedules that exist.
    await client.schedules.get(schedule);
    await client.schedules.remove(schedule);
  });
  printResult({ schedule, removed: true }, [`schedule ${schedule}: removed`], flags.json ?? false);
}
