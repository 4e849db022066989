// Flows and their parts: what was done to a flow was done to its tasks. A flow is a run of a workflow.
import type { Case } from "./case.js";
import type { Flow } from "./flow.js";
import type { History, Of, Task } from "./history.js";
import type { FlowNode } from "./line.js";
import type { Flows } from "./report.js";

type Outcome = Of<"accepted">;

/** The tasks that were made for one place of a flow: one, or one more after each retry. */
export function tasksOf({ offers, tasks }: History, tag: string): Task[] {
  return [...(offers.get(tag)?.tasks ?? [])].map((id) => tasks.get(id)!);
}

/** What was recorded last, until then. */
export function outcomeOf(tasks: readonly Task[], until = Infinity): Outcome | null {
  let last: Outcome | null = null;
  for (const { accepted } of tasks)
    for (const outcome of accepted) if (outcome.at <= until && outcome.at >= (last?.at ?? -Infinity)) last = outcome;
  return last;
}

/**
 * Whoever cancels or retries a flow cancels and retries its tasks. A fan-out that fails fast cancels the
 * others with the first that does not succeed; a handler's fan-out ends with its task.
 */
export function spreadFlows(history: History): void {
  for (const flow of history.flows.values()) {
    const parents = flow.parent === null ? [] : tasksOf(history, flow.parent);
    const ended = parents.flatMap(({ accepted }) => unsuccessful(accepted));
    const cancelling = [...flow.cancelling, ...ended];
    const retrying = [...flow.retrying, ...parents.flatMap((parent) => parent.retrying)];
    for (const node of flow.nodes) spread(history, node, cancelling, retrying);
  }
}

function spread(
  history: History,
  { policy, tags }: FlowNode,
  cancelling: readonly number[],
  retrying: readonly number[],
): void {
  const tasks = tags.flatMap((tag) => tasksOf(history, tag));
  for (const task of tasks) {
    const blamed = policy === "failFast" ? siblingsBefore(task, tasks, retrying) : [];
    add(task.cancelling, [...cancelling, ...blamed]);
    if (unsuccessful(task.accepted).length > 0) add(task.retrying, retrying);
  }
}

/** For each time it was cancelled: another that had not succeeded, since the last retry. The first has none to blame. */
function siblingsBefore(task: Task, tasks: readonly Task[], retrying: readonly number[]): readonly number[] {
  const cancelled = task.accepted.filter(({ state }) => state === "cancelled");
  if (cancelled.length === 0) return [];
  const others = tasks.filter((other) => other !== task);
  const ends = others.flatMap(({ accepted }) => unsuccessful(accepted));
  return cancelled.flatMap(({ at }) => {
    const since = retrying.findLast((asked) => asked <= at) ?? -Infinity;
    return ends.find((end) => end > since && end <= at) ?? [];
  });
}

function unsuccessful(accepted: readonly Outcome[]): number[] {
  return accepted.flatMap(({ state, at }) => (state === "succeeded" ? [] : [at]));
}

function add(to: number[], times: readonly number[]): void {
  if (times.length === 0) return;
  to.push(...times);
  to.sort((a, b) => a - b);
}

export function flowCounts({ history, trial }: Case): Flows {
  const all = [...history.flows.values()];
  const tags = new Set(all.flatMap(({ nodes }) => nodes.flatMap((node) => node.tags)));
  const ended = (state: string): number => all.filter(({ atRest }) => atRest.includes(state as "failed")).length;
  const count = (fits: (flow: Flow) => boolean): number => all.filter(fits).length;
  return {
    offered: count(({ nodes }) => nodes.length > 0),
    acknowledged: count(({ acknowledged }) => acknowledged),
    succeeded: ended("succeeded"),
    failed: ended("failed"),
    cancelled: ended("cancelled"),
    parts: [...history.tasks.values()].filter(({ claims }) => tags.has(claims?.tag ?? "")).length,
    retried: count(({ retrying }) => retrying.length > 0),
    zombieRuns: trial.judged.filter(({ zombie, run }) => zombie && tags.has(run.line.tag)).length,
  };
}
