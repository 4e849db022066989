import type { TaskTerms } from "../core/terms.js";
import type { TaskBatch } from "../postgres/enqueue.js";
import type { Declarations } from "./declarations.js";
import type { Prepared } from "./prepare.js";

/** Builds one statement's batch from tasks that all pass the same limits. */
export async function batchOf(
  declarations: Declarations,
  terms: TaskTerms<never>,
  items: readonly Prepared[],
  common: Pick<TaskBatch, "stream" | "priority" | "attempts">,
): Promise<TaskBatch> {
  const { limits } = items[0]!;
  const keyed = limits.some((l) => l.key !== null);
  return {
    ...common,
    inputs: items.map((i) => i.input),
    limits: limits.length === 0 ? [] : await declarations.limits(common.stream, limits),
    keys: keyed ? items.map((i) => i.limits.flatMap((l) => l.key ?? [])) : null,
    orders: items.some((i) => i.order !== null) ? items.map((i) => i.order ?? "") : null,
    orderBlocks: terms.orderBlocks,
  };
}
