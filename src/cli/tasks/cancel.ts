import type { Command } from "commander";
import type { CancelAnswer } from "../../postgres/cancel.js";
import { confirmed, withYes, type YesFlag } from "../confirm.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { noSuchTasks, taskId, verb } from "./common.js";

const WORDS: Record<CancelAnswer, string> = {
  cancelled: "cancelled",
  asked: "it is running and was asked to stop",
  over: "it had already ended",
  unknown: "there is no such task",
  moving: "it changes its state right now: try again",
};

interface CancelFlags extends Flags, YesFlag {
  readonly reason?: string;
}

/** `sluice tasks cancel`: cancels tasks in any state. */
export function cancelCommand(): Command {
  const command = verb("cancel", {
    summary: "cancel tasks",
    description: "Cancels tasks in any state: waiting tasks never run, and running tasks are asked to stop.",
    examples: ["cancel 4711", 'cancel 4711 4712 --reason "wrong price list" --yes'],
    json:
      '{"tasks":[{"task":"4711","answer":"cancelled"}]}; "asked" while it still runs, "over" if it had ended,\n' +
      '  "unknown" if there is no such task',
  })
    .argument("<tasks...>", "the ids of the tasks")
    .option("--reason <text>", "why");
  return withYes(command).action(runCancel);
}

async function runCancel(given: readonly string[], flags: CancelFlags): Promise<void> {
  const ids = [...new Set(given.map(taskId))];
  const { reason } = flags;
  const what = ids.length === 1 ? `task ${ids[0]}` : `${ids.length} tasks`;
  if (!(await confirmed(`cancel ${what}?`, flags))) return;
  await withClient(flags, async (client) => {
    const tasks: { task: string; answer: CancelAnswer }[] = [];
    for (const id of ids) {
      const answer = await client.task(id).cancel(reason === undefined ? {} : { reason });
      tasks.push({ task: id, answer });
    }
    const lines = tasks.map(({ task, answer }) => `task ${task}: ${WORDS[answer]}`);
    printResult({ tasks }, lines, flags.json ?? false);
    const unknown = tasks.filter(({ answer }) => answer === "unknown");
    if (unknown.length > 0) throw noSuchTasks(unknown.map(({ task }) => task));
    if (tasks.some(({ answer }) => answer === "moving")) process.exitCode = 1;
  });
}
