import type { Command } from "commander";
import type { Client } from "../../client/client.js";
import type { TaskState } from "../../core/state.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { noSuchTasks, taskId, verb } from "./common.js";

/** state: of a task that was not retried; null if there is no such task. */
interface Retried {
  readonly task: string;
  readonly retried: boolean;
  readonly state?: TaskState | null;
}

/** `sluice tasks retry`: runs failed and cancelled tasks again. */
export function retryCommand(): Command {
  return verb("retry", {
    summary: "run failed or cancelled tasks again",
    description:
      "Runs failed or cancelled tasks again, from their first attempt. A task that blocks its order key runs before\n" +
      "the tasks behind it. Tasks in another state are left alone.",
    examples: ["retry 4711", "retry 4711 4712 --json"],
    json: '{"tasks":[{"task":"4711","retried":true},{"task":"4712","retried":false,"state":"running"}]}',
  })
    .argument("<tasks...>", "the ids of the tasks")
    .action(runRetry);
}

async function runRetry(given: readonly string[], flags: Flags): Promise<void> {
  const ids = [...new Set(given.map(taskId))];
  await withClient(flags, async (client) => {
    const tasks: Retried[] = [];
    for (const id of ids) tasks.push(await retryOne(client, id));
    printResult({ tasks }, tasks.map(lineOf), flags.json ?? false);
    const unknown = tasks.filter(({ state }) => state === null);
    if (unknown.length > 0) throw noSuchTasks(unknown.map(({ task }) => task));
  });
}

async function retryOne(client: Client, id: string): Promise<Retried> {
  if (await client.retry(id)) return { task: id, retried: true };
  const status = await client.task(id).status();
  return { task: id, retried: false, state: status?.state ?? null };
}

function lineOf({ task, retried, state }: Retried): string {
  if (retried) return `task ${task}: runs again`;
  return `task ${task}: ${state === null ? "there is no such task" : `is ${state}, so nothing was changed`}`;
}
