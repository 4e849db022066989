import type { Case } from "./case.js";
import type { Flow } from "./flow.js";
import type { Run, Task } from "./history.js";
import { outcomeOf, tasksOf } from "./flows.js";
import type { FlowNode, Heard } from "./line.js";
import { settled } from "./settled.js";
import { named } from "./lost.js";

/**
 * Every flow that was acknowledged comes to its end; each place of it becomes one task, which starts when what
 * comes before it is recorded as over, and is given what was recorded.
 */
export function advanced(on: Case): void {
  for (const flow of on.history.flows.values()) {
    if (there(on, flow)) settled(on, flow);
    for (const node of flow.nodes) {
      for (const tag of node.tags) once(on, flow, node, tasksOf(on.history, tag));
      for (const run of runsOf(on, node)) inTurn(on, flow, node, run);
    }
    if (flow.parent !== null) resumed(on, flow);
  }
}

/** Whether there is something to be held to its promise. */
function there({ findings }: Case, flow: Flow): boolean {
  const { name, acknowledged, withdrawn, parent, atRest } = flow;
  if (atRest.length > 1 || (withdrawn && atRest.length > 0))
    findings.add(
      "neverEnqueued",
      () => `flow ${name} was ${withdrawn ? "withdrawn" : "started once"}, and there are ${atRest.length}`,
    );
  // A fan-out of a handler is not there before its handler has asked for it.
  if (acknowledged && parent === null && atRest.length === 0)
    findings.add("lostItems", () => `flow ${name} was acknowledged and is not there`);
  if (atRest.includes("running")) findings.add("notEnded", () => `flow ${name} is not over`);
  return atRest.length === 1 && atRest[0] !== "running" && !withdrawn;
}

/** Another task for the same place only after a retry of the flow, and when the one before is over. */
function once({ findings }: Case, flow: Flow, { policy }: FlowNode, tasks: readonly Task[]): void {
  if (tasks.length < 2) return;
  const byTime = tasks.toSorted((a, b) => firstOf(a) - firstOf(b));
  const [kind, at] = [policy === "task" ? "advancedTwice" : "itemTwice", firstOf] as const;
  byTime.slice(1).forEach((task, i) => {
    const retries = flow.retrying.filter((asked) => asked <= at(task)).length;
    const before = outcomeOf([byTime[i]!])?.at ?? Infinity;
    if (retries <= i || before > at(task))
      findings.add(kind, () => `${flow.name}: ${named(task)} was made beside task ${byTime[i]!.id}`);
  });
}

/** When there was anything of it. */
function firstOf({ runs, accepted }: Task): number {
  return Math.min(runs[0]?.line.at ?? Infinity, accepted[0]?.at ?? Infinity);
}

function runsOf({ history }: Case, { tags }: FlowNode): Run[] {
  return tags.flatMap((tag) => tasksOf(history, tag).flatMap(({ runs }) => runs));
}

function inTurn(on: Case, flow: Flow, node: FlowNode, run: Run): void {
  const { start, doubtfulStart } = on.trial.of(run);
  if (doubtfulStart) return;
  const early = node.after.find((name) => !isOver(on, flow, nodeOf(flow, name), node.on, start));
  if (early !== undefined)
    on.findings.add(
      node.chained ? "outOfSequence" : "startedTooSoon",
      () => `${named(run.task)} started at ${on.clock(start)}, before ${early} was over`,
    );
  if (run.line.heard !== undefined) hears(on, flow, run.task, run.line.heard, start);
}

/** Whether a node was recorded as over at that time, and as what is waited for. */
function isOver(on: Case, flow: Flow, node: FlowNode, as: FlowNode["on"], at: number): boolean {
  if (as === "end" && isSkipped(on, flow, node, at)) return true;
  return node.tags.every((tag) => {
    const tasks = tasksOf(on.history, tag);
    const outcome = outcomeOf(tasks, at);
    if (outcome === null || runsAgain(on, tasks, outcome.at, at)) return false;
    return as === "end" || node.policy === "collect" || outcome.state === "succeeded";
  });
}

/** What it comes after was over by then, and not as it waits for: so it is over too. */
function isSkipped(on: Case, flow: Flow, node: FlowNode, at: number): boolean {
  return node.after.some((name) => {
    const before = nodeOf(flow, name);
    return isOver(on, flow, before, "end", at) && !isOver(on, flow, before, node.on, at);
  });
}

/** Somebody had it retried by hand, and it surely runs. */
function runsAgain({ trial }: Case, tasks: readonly Task[], since: number, at: number): boolean {
  return tasks.some(({ runs }) =>
    runs.some((run) => {
      const { start, sureUntil, doubtfulStart } = trial.of(run);
      return !doubtfulStart && start > since && start < at && sureUntil > at;
    }),
  );
}

function hears(on: Case, flow: Flow, task: Task, heard: Heard, at: number): void {
  for (const [name, told] of Object.entries(heard)) {
    const { policy, tags } = nodeOf(flow, name);
    const claims = tags.map((tag) => {
      const outcome = outcomeOf(tasksOf(on.history, tag), at);
      return outcome?.state === "succeeded" ? outcome.claim : null;
    });
    const expected = JSON.stringify(policy === "task" ? claims[0] : claims);
    if (JSON.stringify(told) !== expected)
      on.findings.add(
        "heardWrong",
        () => `${named(task)} was told that ${name} came to ${JSON.stringify(told)}, not ${expected}`,
      );
  }
}

/** A handler that fanned out goes on when all its items are over, and with what they came to. */
function resumed(on: Case, flow: Flow): void {
  for (const { task, end, ...run } of tasksOf(on.history, flow.parent!).flatMap(({ runs }) => runs)) {
    if (end?.heard === undefined || on.trial.judged[run.n]!.zombie) continue;
    const early = flow.nodes.find((node) => !isOver(on, flow, node, "end", end.at));
    if (early !== undefined)
      on.findings.add("startedTooSoon", () => `${named(task)} went on before ${early.name} was over`);
    hears(on, flow, task, end.heard, end.at);
  }
}

function nodeOf({ nodes }: Flow, name: string): FlowNode {
  return nodes.find((node) => node.name === name)!;
}
