import type { Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import { inTransaction } from "../postgres/transaction.js";
import { misplaced, placed, placeTasks, type PlacedBatch, type Unplaced } from "../postgres/workflow/place.js";
import { lockUnplaced, unplacedOf } from "../postgres/workflow/unplaced.js";
import type { Desk } from "../tasks/enqueue.js";
import type { Workflow } from "../workflow/workflow.js";
import { faultOf, NotWanted, notWanted, preparePiece, renderPiece } from "./place.js";

// More are placed by a worker: a start must not take long.
const ROOT_ITEMS_MAX = 1_000;

/**
 * Places what a fresh run begins with and only code can place. With the caller's transaction in that one; else
 * in transactions of their own after the start, so that no connection is held while limits are declared. The
 * run is there by then: what cannot be placed now is placed by a worker, and is no reason to fail the start.
 */
export async function placeRoots(
  desk: Desk,
  run: string,
  workflow: Workflow,
  tx: Queryable | undefined,
): Promise<void> {
  const inCode = workflow.contracts.filter(needsCode) as TaskTerms<never>[];
  if (inCode.length === 0) return;
  if (tx !== undefined) return placeAll(desk, run, inCode, tx);
  await placeAll(desk, run, inCode).catch(async () => {
    // Somebody may have removed a limit that we had declared.
    desk.declarations.forget();
    await placeAll(desk, run, inCode).catch(() => {});
  });
}

async function placeAll(desk: Desk, run: string, inCode: readonly TaskTerms<never>[], tx?: Queryable): Promise<void> {
  const terms = new Map<number, TaskTerms<never>>();
  for (const one of inCode) terms.set(await desk.declarations.stream(one), one);
  for (const node of await unplacedOf(desk.db, run, tx)) {
    const its = terms.get(node.stream);
    if (its !== undefined && node.total <= ROOT_ITEMS_MAX) await placeRoot(desk, node, its, tx);
  }
}

/** Whether only code can tell where a task of this type stands in line. */
function needsCode({ ordered, limitList }: TaskTerms): boolean {
  return ordered || limitList === null || limitList.some(({ limit }) => limit.perKey !== undefined);
}

async function placeRoot(
  desk: Desk,
  node: Unplaced,
  terms: TaskTerms<never>,
  tx: Queryable | undefined,
): Promise<void> {
  // What the database refuses to render has ended the caller's transaction: that is the caller's to hear.
  const texts = await renderPiece(desk, node, { from: 0, max: ROOT_ITEMS_MAX }, tx);
  let batches: PlacedBatch[];
  try {
    batches = await preparePiece(desk, node, terms, texts, 0);
  } catch (e) {
    const fault = faultOf(e);
    if (fault === null) throw e;
    await misplaced(desk.db, node, fault, tx);
    return;
  }
  const place = async (on: Queryable): Promise<void> => {
    if (!(await lockUnplaced(desk.db, node, tx === undefined, on))) return;
    for (const batch of batches) await placeTasks(desk.db, node, batch, on);
    if (!(await placed(desk.db, node, on))) throw new NotWanted();
  };
  if (tx !== undefined) return place(tx);
  await inTransaction(desk.db, place).catch((e: unknown) => {
    if (!notWanted(e)) throw e;
  });
}
