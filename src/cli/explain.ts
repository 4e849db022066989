import type { Command } from "commander";
import { SluiceError } from "../core/error.js";
import type { Explanation, QueueExplanation } from "../core/explanation.js";
import { quote } from "../core/quote.js";
import { printResult } from "./print.js";
import { verb, withClient, type Flags } from "./verb.js";

/** `sluice explain`: why is this task not running? */
export function explainCommand(): Command {
  return verb("explain", {
    summary: "show why a task, or the tasks of a queue, do not run",
    description:
      "Lists what keeps a task from running, in the order in which the task meets it: its time, the task\n" +
      "before it in its order key, full limits and which tasks hold their slots since when, the window of its\n" +
      "fan-out, a pause, and workers that are missing, silent or full. With --queue, counts the tasks of a\n" +
      "queue by reason.",
    examples: ["explain 4711", "explain --queue mail", "explain 4711 --json | jq .reasons"],
    json:
      '{"task":"4711","type":"send","queue":"mail","state":"waiting","message":...,' +
      '"reasons":[{"kind":"limit",...}],...};\n' +
      '  for a queue {"queue":"mail","paused":false,"workers":{...},"running":[...],' +
      '"reasons":[{"kind":"limit","count":12,...}]}',
  })
    .argument("[task]", "the id of the task")
    .option("--queue <name>", "explain a whole queue instead")
    .action(runExplain);
}

async function runExplain(id: string | undefined, flags: Flags & { readonly queue?: string }): Promise<void> {
  const { json = false, queue } = flags;
  checkArguments(id, queue);
  await withClient(flags, async (client) => {
    if (queue !== undefined) {
      const explained = await client.explainQueue(queue);
      return printResult(explained, queueView(explained), json);
    }
    const explained = await client.explain(id!);
    if (explained === null) {
      throw new SluiceError("task_not_found", `there is no task ${id}, or it ended and its history was not kept`);
    }
    printResult(explained, taskView(explained), json);
  });
}

function checkArguments(id: string | undefined, queue: string | undefined): void {
  if (id !== undefined && queue !== undefined) throw misused("pass a task or --queue, not both");
  if (id === undefined && queue === undefined)
    throw misused("pass the id of a task, or --queue and the name of a queue");
  if (id !== undefined && !/^\d{1,18}$/.test(id))
    throw misused(`${quote(id)} is not a task id; did you mean --queue ${id}?`);
}

function misused(message: string): SluiceError {
  return new SluiceError("invalid_option", message);
}

function taskView({ task, type, queue, state, workflow, message, reasons }: Explanation): string[] {
  const place =
    workflow === null
      ? ""
      : `, ${workflow.item === null ? "" : `item ${workflow.item} of `}node ${workflow.node} in run ${workflow.run}`;
  const said = reasons.length === 0 ? [message] : reasons.map((reason) => reason.message);
  return [
    `task ${task}: ${type} in queue ${queue}, ${state}${place}`,
    ...said.map((line, i) => (i === 0 ? `  ${line}` : `  then: ${line}`)),
  ];
}

function queueView(explained: QueueExplanation): string[] {
  const { queue, paused, workers, running, reasons, reasonsLeft } = explained;
  const { live, leaving, silent, stopped, capacity, available } = workers;
  const said = [
    `${live === 0 ? "no" : live} live ${live === 1 ? "worker" : "workers"}`,
    ...(leaving > 0 ? [`${leaving} shutting down`] : []),
    ...(silent > 0 ? [`${silent} with a missed heartbeat`] : []),
    ...(stopped > 0 ? [`${stopped} not claiming because of memory or load`] : []),
    ...(live > silent + stopped ? [`${available} of ${capacity} places free`] : []),
  ];
  const lines = [
    ...running.map(({ type, count }) => `${count} ${quote(type)} running`),
    ...reasons.map(({ message }) => message),
    ...(reasonsLeft > 0 ? [`and ${reasonsLeft} more reasons with fewer tasks each`] : []),
  ];
  return [
    `queue ${queue}${paused ? ", paused" : ""}: ${said.join(", ")}`,
    ...(lines.length === 0 ? ["no tasks are waiting or running"] : lines).map((l) => `  ${l}`),
  ];
}
