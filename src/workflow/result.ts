import { quote } from "../core/quote.js";
import type { Draft } from "./draft.js";
import type { TemplateData } from "./graph.js";

/** Returns the template of a run's result. Refuses to read nodes as succeeded that a successful run may lack. */
export function resultData(draft: Draft, out: unknown): TemplateData {
  const { data, uses } = draft.template(out);
  const caught = caughtIn(draft);
  const missing = missingWith(draft, caught);
  for (const [name, asked] of uses) {
    if (asked === "value" ? missing.has(name) : asked === "outside" && caught.has(name)) {
      throw draft.fault(
        `its result reads the output of ${quote(name)}, but a branch handles the failure of that node, so a run may ` +
          "succeed without it: return ended(...) of that node",
      );
    }
  }
  return data;
}

/** Nodes that may fail without failing the run. */
function caughtIn({ nodes }: Draft): Set<string> {
  const guards = nodes.flatMap(({ after }) => after.filter(({ recover }) => recover === true));
  return new Set(guards.map(({ node }) => node));
}

/**
 * Returns these nodes and the nodes that need them, which are skipped. Each node is written after its dependencies, so
 * one pass suffices.
 */
function missingWith({ nodes }: Draft, caught: ReadonlySet<string>): Set<string> {
  const missing = new Set(caught);
  for (const { name, after, uses } of nodes) {
    const named = new Map(after.map(({ node, on }) => [node, on]));
    const needed = [...named, ...[...uses.keys()].map((one) => [one, "success"] as const)].filter(
      ([one, on]) => on === "success" && (named.get(one) ?? on) === "success",
    );
    if (needed.some(([one]) => missing.has(one))) missing.add(name);
  }
  return missing;
}
