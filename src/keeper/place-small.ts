import { batchesOf, faultOf, prepareText, type PlaceDesk } from "../client/place.js";
import type { Prepared } from "../client/prepare.js";
import type { Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import { inTransaction, type Lender } from "../postgres/transaction.js";
import { misplaced, type PlacedBatch } from "../postgres/workflow/place.js";
import { placeSmallTasks, takeSmall, type SmallNode } from "../postgres/workflow/small.js";

/** What placing needs: the types that this process knows, and connections that no claim uses. */
export interface PlaceCrew extends PlaceDesk {
  readonly pool: Lender;
  /** By stream. */
  readonly terms: ReadonlyMap<number, TaskTerms<never>>;
}

/** How many were placed or failed, and whether there are others that are to be placed one by one. */
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

export const SMALL_MAX = 100;
const SMALL_BYTES = 4 * 1024 * 1024;
// Checking may wait for what the user's own code waits for; the server ends a transaction that stands still for long.
const PREPARE_MS_MAX = 5_000;

/**
 * Places nodes of one task each, many in one transaction: a chain advances by one node after the other, and each in a
 * transaction of its own would cost more than its task. Those whose fault it is fail; if anything else goes wrong, none
 * is placed.
 */
export async function placeSmall(o: PlaceCrew): Promise<PlacedSmall> {
  const faults: Fault[] = [];
  const placed = await inTransaction(o.db, (tx) => work(o, faults, tx), o.pool);
  // What we have in hand we cannot let fail: whoever does that may have to wait for its run.
  for (const { node, error } of faults) await misplaced(o.db, node, error);
  return placed;
}

async function work(o: PlaceCrew, faults: Fault[], tx: Queryable): Promise<PlacedSmall> {
  const limits = { max: SMALL_MAX, bytes: SMALL_BYTES };
  const { nodes, others } = await takeSmall(o.db, [...o.terms.keys()], limits, tx);
  const items = await prepareAll(o, nodes, faults);
  const batches = await batchesOfAll(o, items);
  // From the first of these on runs are locked: nothing but statements comes between.
  let lock = items.map(({ node }) => node.run);
  for (const { theirs, batch } of batches) {
    await placeSmallTasks(o.db, theirs, lock, batch, tx);
    lock = [];
  }
  return { count: nodes.length, others };
}

interface SmallBatch {
  readonly theirs: readonly SmallNode[];
  readonly batch: PlacedBatch;
}

/** What is to be inserted, by statement. Limits that are new are declared here, on another connection. */
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

/** Checked and given their keys, but for those that cannot be, or not in time: they are taken again. */
async function prepareAll(
  { terms }: PlaceCrew,
  nodes: readonly SmallNode[],
  faults: Fault[],
): Promise<Item[]> {
  const items: Item[] = [];
  const began = performance.now();
  for (const node of nodes) {
    if (performance.now() - began > PREPARE_MS_MAX) break;
    try {
      items.push({ node, prepared: await prepareText(terms.get(node.stream)!, node.input) });
    } catch (e) {
      // guard: small ones fail by themselves -> test/worker/workflow-place.test.ts: "a key function that throws fails the node with a reason, once, and the worker goes on without a poll"
      const error = faultOf(e);
      if (error === null) throw e;
      faults.push({ node, error });
    }
  }
  return items;
}

/** Those of one type, priority and number of attempts together. */
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
