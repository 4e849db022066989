import type { Case } from "./case.js";
import type { Flow } from "./flow.js";
import { outcomeOf, tasksOf } from "./flows.js";
import type { FlowNode } from "./line.js";

type State = "succeeded" | "failed" | "cancelled" | "skipped" | "lost";

/**
 * What a flow should have come to, by what its tasks came to: a node runs if what it comes after came to what it
 * waits for, and then all of its places have an outcome. A flow that was cancelled may have left out a node, but
 * not a part of it.
 */
export function settled(on: Case, flow: Flow): void {
  const atRest = flow.atRest[0]!;
  const states = new Map<string, State>();
  const mayLeaveOut = atRest === "cancelled" || !mustRun(on, flow);
  for (const node of flow.nodes) states.set(node.name, stateOf(on, flow, node, states, mayLeaveOut));
  const all = [...states.values()];
  if (all.includes("lost")) return;
  const due = all.includes("failed") ? "failed" : all.includes("cancelled") ? "cancelled" : "succeeded";
  const cancelled = atRest === "cancelled" && causeOfCancel(on, flow);
  if (atRest !== due && !cancelled)
    on.findings.add("wrongVerdict", () => `flow ${flow.name} ended as ${atRest}, not as ${due}`);
}

/** A handler's fan-out need not come to anything if its task did not succeed. */
function mustRun({ history }: Case, { parent }: Flow): boolean {
  return parent === null || outcomeOf(tasksOf(history, parent))?.state === "succeeded";
}

function causeOfCancel(on: Case, flow: Flow): boolean {
  return flow.cancelling.length > 0 || !mustRun(on, flow);
}

function stateOf(
  { history, findings }: Case,
  flow: Flow,
  node: FlowNode,
  before: ReadonlyMap<string, State>,
  mayLeaveOut: boolean,
): State {
  const tasks = node.tags.map((tag) => tasksOf(history, tag));
  const made = tasks.filter(({ length }) => length > 0).length;
  // What is lost is told once; what comes after it is not to blame.
  if (node.after.some((name) => before.get(name) === "lost")) return "lost";
  const ready = node.after.every((name) => isReady(before.get(name)!, node.on));
  if (!ready) {
    if (made > 0)
      findings.add("advancedWithoutCause", () => `flow ${flow.name}: ${node.name} ran, though ${toldOf(node, before)}`);
    return "skipped";
  }
  if (made === 0 && mayLeaveOut) return "skipped";
  const outcomes = tasks.map((places) => outcomeOf(places));
  const missing = node.tags.filter((_, i) => outcomes[i] === null);
  if (missing.length === 0)
    return verdictOf(
      node,
      outcomes.map((outcome) => outcome!.state),
    );
  for (const tag of missing) findings.add("lostItems", () => `${tag} has no outcome, and flow ${flow.name} is over`);
  return "lost";
}

function isReady(state: State, on: FlowNode["on"]): boolean {
  return state === "succeeded" || on === "end";
}

function verdictOf({ policy }: FlowNode, states: readonly State[]): State {
  if (policy === "collect") return "succeeded";
  if (states.includes("failed")) return "failed";
  return states.includes("cancelled") ? "cancelled" : "succeeded";
}

function toldOf({ after }: FlowNode, before: ReadonlyMap<string, State>): string {
  return after.map((name) => `${name} came to ${before.get(name)}`).join(", ");
}
