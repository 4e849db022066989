import type { Command } from "commander";
import { quote } from "../../core/quote.js";
import { confirmed, withYes, type YesFlag } from "../confirm.js";
import { printResult } from "../print.js";
import { verb, withClient, type Flags } from "../verb.js";

/** `sluice queues pause`. */
export function pauseCommand(): Command {
  const help = {
    summary: "stop claims from a queue",
    description: "Stops all workers from claiming tasks of the queue. Running tasks finish; enqueues go on.",
    examples: ["pause mail", "pause mail --yes --json"],
    json: '{"queue":"mail","paused":true}',
  };
  const command = verb("pause", help, "queues ").argument("<queue>", "the name of the queue");
  return withYes(command).action(runPause);
}

/** `sluice queues resume`. */
export function resumeCommand(): Command {
  const help = {
    summary: "let workers claim from a queue again",
    description: "Lets workers claim tasks of a paused queue again.",
    examples: ["resume mail"],
    json: '{"queue":"mail","paused":false}',
  };
  return verb("resume", help, "queues ").argument("<queue>", "the name of the queue").action(runResume);
}

async function runPause(queue: string, flags: Flags & YesFlag): Promise<void> {
  if (!(await confirmed(`pause queue ${quote(queue)}, so that no task of it starts?`, flags))) return;
  await withClient(flags, (client) => client.pause(queue));
  printResult({ queue, paused: true }, [`queue ${queue}: paused`], flags.json ?? false);
}

async function runResume(queue: string, flags: Flags): Promise<void> {
  await withClient(flags, (client) => client.resume(queue));
  printResult({ queue, paused: false }, [`queue ${queue}: resumed`], flags.json ?? false);
}
