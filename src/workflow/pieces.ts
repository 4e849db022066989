import { SluiceError } from "../core/error.js";
import { checkOneOf, checkOptions } from "../core/option.js";
import { quote } from "../core/quote.js";
import type { Draft, DraftEdge } from "./draft.js";

const AFTER_ON = ["success", "failure", "end"] as const;
/** The outputs of an `each` that succeeded. */
export const EACH_OUTPUTS = ["results", "errors", "counts"];
const COMPARES = ["equals", "differs", "above", "below"];

/** Returns the nodes among these that no other of them depends on. */
export function endsOf(draft: Draft, names: readonly string[]): string[] {
  const inside = draft.nodes.filter((node) => names.includes(node.name));
  const followed = new Set(inside.flatMap((node) => [...node.uses.keys(), ...node.after.map((edge) => edge.node)]));
  return names.filter((name) => !followed.has(name));
}

/** Returns references to one node that require only its end. */
export function endedOf(draft: Draft, thing: unknown): object {
  const { names, single } = draft.handleOf(thing);
  const [name] = names;
  if (name === undefined || !single) {
    throw draft.fault("ended takes one node: a task, an each, a sleep or a waitFor");
  }
  const kind = draft.kindOf(name);
  if (kind === "task" || kind === "waitFor") return draft.endedRef(name);
  const keys = kind === "each" ? [...EACH_OUTPUTS, "error"] : ["error"];
  return Object.freeze(Object.fromEntries(keys.map((key) => [key, draft.endedRef(name, [key])])));
}

/** Returns the option `after` as dependencies. */
export function afterEdges(draft: Draft, after: unknown, node: string): DraftEdge[] {
  if (after === undefined) return [];
  if (!Array.isArray(after)) throw draft.fault("after must be a list of nodes", node);
  const edges = after.flatMap((one: unknown) => {
    const { thing, on } = isOn(one) ? asOn(one) : { thing: one, on: "success" as const };
    return draft.handleOf(thing, node).names.map((name) => ({ node: name, on }));
  });
  const ons = new Map<string, string>();
  for (const { node: before, on } of edges) {
    if ((ons.get(before) ?? on) !== on) {
      throw draft.fault(
        `it comes after ${quote(before)} both on ${ons.get(before)} and on ${on}: use one of them`,
        node,
      );
    }
    ons.set(before, on);
  }
  return edges;
}

function isOn(one: unknown): one is object {
  return typeof one === "object" && one !== null && Object.hasOwn(one, "on");
}

function asOn(one: object): { thing: unknown; on: (typeof AFTER_ON)[number] } {
  checkOptions("after", one, ["node", "on"]);
  return {
    thing: Reflect.get(one, "node"),
    on: checkOneOf("on", Reflect.get(one, "on"), AFTER_ON),
  };
}

/** Returns a condition written in code in the form of the graph. */
export function conditionData(condition: unknown): { is: unknown; value?: unknown } {
  if (typeof condition === "string") return { is: condition };
  checkOptions("condition", condition, COMPARES);
  const entries = Object.entries(condition as object);
  const [entry] = entries;
  if (entry !== undefined && entries.length === 1) return { is: entry[0], value: entry[1] };
  throw new SluiceError("invalid_option", `a condition must be one of ${COMPARES.join(", ")}`);
}
