import type { Command } from "commander";
import type { Client } from "../../client/client.js";
import { isSluiceError } from "../../core/error.js";
import type { Explanation } from "../../core/explanation.js";
import type { FailedAttempt, TaskProgress, TaskStatus } from "../../postgres/inspect.js";
import { details, jsonLine, moment } from "../columns.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { oneLine } from "../workflow/view.js";
import { noSuchTasks, taskId, verb } from "./common.js";

/** A task with its failed attempts, and its input if the role may read it. */
interface Shown extends TaskStatus {
  readonly input?: unknown;
  readonly attempts: readonly FailedAttempt[];
}

/** `sluice tasks show`: the state of one task, its outcome, and why it does not run. */
export function showCommand(): Command {
  return verb("show", {
    summary: "show a task, its outcome and why it does not run",
    description:
      "Shows the state of a task, its input without secrets, its times, its failed attempts and its outcome, and in the\n" +
      "words of explain how it is running, how it ended or what keeps it from running. Long values are shortened;\n" +
      "--json prints them whole.",
    examples: ["show 4711", "show 4711 --json | jq .outcome"],
    json:
      '{"id":"4711","type":"send","queue":"mail","state":"failed","attempt":5,"input":{...},"outcome":{...},...,\n' +
      '  "attempts":[{"attempt":1,"error":{...},...}],"explanation":{"message":...,"reasons":[...],...}}',
  })
    .argument("<task>", "the id of the task")
    .action(runShow);
}

async function runShow(given: string, flags: Flags): Promise<void> {
  const id = taskId(given);
  await withClient(flags, async (client) => {
    const [task, explanation] = await Promise.all([read(client, id), client.explain(id)]);
    if (task === null) throw noSuchTasks([id]);
    printResult({ ...task, explanation }, viewOf(task, explanation), flags.json ?? false);
  });
}

async function read(client: Client, id: string): Promise<Shown | null> {
  const handle = client.task(id);
  try {
    return await handle.get();
  } catch (e) {
    // Only the owner and readers may read inputs.
    if (!isSluiceError(e, "not_permitted")) throw e;
    const [status, attempts] = await Promise.all([handle.status(), handle.attempts()]);
    return status === null ? null : { ...status, attempts };
  }
}

function viewOf(task: Shown, explanation: Explanation | null): string[] {
  const { id, type, queue, state, attempt, attemptsMax, priority, outcome } = task;
  const reasons = explanation?.reasons ?? [];
  const said = reasons.length > 0 ? reasons.map(({ message }) => message) : [explanation?.message ?? null];
  return details(`task ${id}: ${type} in queue ${queue}, ${state}`, [
    ["attempts", `${attempt} of ${attemptsMax}`],
    ["priority", priority === 0 ? null : String(priority)],
    ["created", moment(task.createdAt)],
    ["runs at", moment(task.runAt)],
    ["started", moment(task.startedAt)],
    ["finished", moment(task.finishedAt)],
    ["progress", task.progress === null ? null : progressText(task.progress)],
    ["input", task.input == null ? null : jsonLine(task.input)],
    ...task.attempts.map((each) => [`attempt ${each.attempt}`, attemptText(each)] as const),
    ["outcome", outcome === null ? null : jsonLine(outcome)],
    ...said.map((line, i) => [i === 0 ? "explain" : "then", line] as const),
  ]);
}

function attemptText({ failedAt, worker, durationMs, error }: FailedAttempt): string {
  const took = durationMs === null ? "" : ` after ${Math.round(durationMs)} ms`;
  const on = worker === null ? "" : ` on ${worker}`;
  return `failed at ${failedAt.toISOString()}${took}${on}${error === null ? "" : `: ${oneLine(error.message)}`}`;
}

function progressText({ fraction, data, at }: TaskProgress): string {
  return `${Math.floor(fraction * 100)} % at ${at.toISOString()}${data == null ? "" : `, ${jsonLine(data)}`}`;
}
