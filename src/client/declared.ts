import { SluiceError } from "../core/error.js";
import { isLimit, type Limit } from "../core/limit.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";
import type { Graph } from "../workflow/graph.js";
import { readGraph } from "../workflow/read.js";
import type { Workflow } from "../workflow/workflow.js";

/**
 * Anything that can be declared at a deploy: the results of limit(), task() and workflow(), and graphs as plain data.
 */
export type Declared = Limit | TaskTerms | Pick<Workflow, "name" | "graph" | "digest" | "contracts"> | Graph;

type Flow = Pick<Workflow, "graph" | "contracts">;

/** Numbers first, then the workflows that refer to their types: the order of the list does not matter. */
interface Sorted {
  readonly numbers: readonly (Limit | TaskTerms)[];
  readonly workflows: readonly Flow[];
}

/** Separates the kinds, and checks all of them before anything is written. */
export function sortDeclared(declared: unknown): Sorted {
  if (!Array.isArray(declared))
    throw new SluiceError("invalid_option", "sync takes a list of limits, tasks, workflows and graphs");
  const numbers: (Limit | TaskTerms)[] = [];
  const workflows: Flow[] = [];
  for (const one of declared as readonly unknown[]) {
    if (isLimit(one)) numbers.push(one);
    else if (isTask(one)) numbers.push(one);
    else workflows.push(flowOf(one));
  }
  return { numbers, workflows };
}

function isTask(one: unknown): one is TaskTerms {
  return typeof (one as Partial<TaskTerms> | null)?.place === "function";
}

function flowOf(one: unknown): Flow {
  const said = (one ?? {}) as Partial<Workflow> & { readonly nodes?: unknown };
  const { graph, digest, contracts, nodes } = said;
  if (graph !== undefined && typeof digest === "string" && Array.isArray(contracts)) return { graph, contracts };
  // Plain data from JSON, whether or not readGraph has already processed it.
  if (nodes !== undefined) return { graph: readGraph(one), contracts: [] };
  throw new SluiceError(
    "unknown_task",
    `sync takes results of limit(), task() and workflow(), and graphs as plain data, not ${quote(one)}`,
  );
}
