import { isSluiceError, type SluiceError } from "../core/error.js";
import type { Queryable } from "../core/ports.js";
import { inTransaction } from "../postgres/transaction.js";
import { misplaced, putOff, type PlacedBatch } from "../postgres/workflow/place.js";
import { placeSmallTasks, takeSmall, type SmallNode } from "../postgres/workflow/small.js";
import type { Prepared } from "../tasks/prepare.js";
import { batchesOf, faultOf, prepareText, type PlaceCrew } from "./place.js";
import { trying } from "./try.js";

/** How many nodes were placed or failed, and whether others remain to be placed one by one. */
interface PlacedSmall {
  readonly count: number;
  readonly others: boolean;
}

interface Item {
  readonly node: SmallNode;
  readonly prepared: Prepared;
}

interface Fault {
  readonly node: SmallNode;
  /** JSON text. */
  readonly error: string;
}

interface Late {
  readonly node: SmallNode;
  readonly error: SluiceError;
}

/** Nodes of a batch that are not placed with it: their inputs are invalid, or were not checked in time. */
interface Left {
  readonly faults: Fault[];
  readonly late: Late[];
}

export const SMALL_MAX = 100;
const SMALL_BYTES = 4 * 1024 * 1024;

/**
 * Places nodes of one task each, many in one transaction: a chain advances one node at a time, and a separate
 * transaction for each would cost more than its task. Nodes with invalid inputs fail, and nodes that were not checked
 * in time are put off. If anything else goes wrong, no node is placed.
 */
export async function placeSmall(o: PlaceCrew): Promise<PlacedSmall> {
  const left: Left = { faults: [], late: [] };
  // Nodes locked by the transaction are failed only after it: failing a node may have to wait for a lock on its run.
  try {
    const placed = await inTransaction(o.db, (tx) => work(o, left, tx), o.pool);
    for (const { node, error } of left.faults) await misplaced(o.db, node, error);
    return placed;
  } finally {
    for (const { node, error } of left.late) {
      o.onPutOff?.(error);
      await putOff(o.db, node, error);
    }
  }
}

async function work(o: PlaceCrew, left: Left, tx: Queryable): Promise<PlacedSmall> {
  const limits = { max: SMALL_MAX, bytes: SMALL_BYTES };
  const { nodes, others } = await takeSmall(o.db, [...o.terms.keys()], limits, tx);
  if (nodes.length > 0) await trying(o, nodes, tx, () => placeAll(o, nodes, left, tx));
  return { count: nodes.length, others };
}

async function placeAll(o: PlaceCrew, nodes: readonly SmallNode[], left: Left, tx: Queryable): Promise<void> {
  const items = await prepareAll(o, nodes, left);
  const batches = await batchesOfAll(o, items);
  // The first of these statements locks the runs: nothing but statements may follow.
  let lock = items.map(({ node }) => node.run);
  for (const { theirs, batch } of batches) {
    await placeSmallTasks(o.db, theirs, lock, batch, tx);
    lock = [];
  }
}

interface SmallBatch {
  readonly theirs: readonly SmallNode[];
  readonly batch: PlacedBatch;
}

/** Returns the batches to insert, one per statement. Declares new limits, on another connection. */
async function batchesOfAll(o: PlaceCrew, items: readonly Item[]): Promise<SmallBatch[]> {
  const all: SmallBatch[] = [];
  for (const group of alike(items)) {
    const { node } = group[0]!;
    const prepared = group.map((item) => item.prepared);
    for (const batch of await batchesOf(o, node, o.terms.get(node.stream)!, prepared, 0)) {
      const theirs = group.slice(batch.from, batch.from + batch.inputs.length);
      all.push({ theirs: theirs.map((item) => item.node), batch });
    }
  }
  return all;
}

/**
 * Checks the nodes and resolves their keys, except for nodes that are invalid or not checked in time. All run
 * concurrently: none waits for a slow one.
 */
async function prepareAll({ terms }: PlaceCrew, nodes: readonly SmallNode[], { faults, late }: Left): Promise<Item[]> {
  const prepare = async (node: SmallNode): Promise<Item | null> => {
    try {
      return { node, prepared: await prepareText(terms.get(node.stream)!, node.input) };
    } catch (e) {
      // guard: small ones fail by themselves -> test/runs/placer.test.ts: "a key function that throws fails its node once, with a reason, and the worker continues without a poll"
      const error = /* guard:fault */ faultOf(e); /* end */
      if (error !== null) faults.push({ node, error });
      else if (isSluiceError(e, "timeout")) late.push({ node, error: e });
      else throw e;
      return null;
    }
  };
  const items = await Promise.all(nodes.map(prepare));
  return items.filter((item) => item !== null);
}

/** Groups items of the same type, priority and number of attempts. */
function alike(items: readonly Item[]): Item[][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const { stream, priority, attempts } = item.node;
    const key = `${stream}:${priority}:${attempts}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}
