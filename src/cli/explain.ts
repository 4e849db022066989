import type { Command } from "commander";
import { SluiceError } from "../core/error.js";
import type { Explanation, QueueExplanation } from "../core/explanation.js";
import { printResult } from "./print.js";
import { verb, withClient, type Flags } from "./verb.js";

/** `sluice explain`: why is this task not running? */
export function explainCommand(): Command {
  return verb("explain", {
    summary: "tell why a task, or a queue, does not run",
    description:
      "Tells what is between a task and its run, in the order in which the task meets it: its time, the task\n" +
      "before it in its order key, the limits that are full and who holds them since when, the window of its\n" +
      "fan-out, a pause, no worker. With --queue: how many tasks of a queue are held by what.",
    examples: ["explain 4711", "explain --queue mail", "explain 4711 --json | jq .reasons"],
    json:
      '{"task":"4711","type":"send","queue":"mail","state":"waiting","message":...,"reasons":[{"kind":"limit",...}],...};\n' +
      '  of a queue {"queue":"mail","paused":false,"workers":{...},"running":[...],"reasons":[{"kind":"limit","count":12,...}]}',
  })
    .argument("[task]", "its id")
    .option("--queue <name>", "explain a whole queue instead")
    .action(runExplain);
}

async function runExplain(
  id: string | undefined,
  flags: Flags & { readonly queue?: string },
): Promise<void> {
  const { json = false, queue } = flags;
  if ((id === undefined) === (queue === undefined)) {
    throw new SluiceError("invalid_option", "name a task, or a queue by --queue");
  }
  await withClient(flags, async (client) => {
    if (queue !== undefined) {
      const explained = await client.explainQueue(queue);
      return printResult(explained, queueView(explained), json);
    }
    const explained = await client.explain(id!);
    if (explained === null) {
      throw new SluiceError("task_not_found", `there is no task ${id}, or it has left no history`);
    }
    printResult(explained, taskView(explained), json);
  });
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

function queueView({ queue, paused, workers, running, reasons }: QueueExplanation): string[] {
  const { live, leaving, capacity, available, stopped } = workers;
  const more = [leaving > 0 && `${leaving} leaving`, stopped > 0 && `${stopped} claiming nothing`];
  const said = reasons.map((reason) => `  ${reason.message}`);
  return [
    `queue ${queue}${paused ? ", paused" : ""}: ${[`${live} live ${live === 1 ? "worker" : "workers"}`, `${available} of ${capacity} places free`, ...more.filter(Boolean)].join(", ")}`,
    ...running.map(({ type, count }) => `  ${count} of "${type}" running`),
    ...(said.length + running.length === 0 ? ["  nothing waits, and nothing runs"] : said),
  ];
}
