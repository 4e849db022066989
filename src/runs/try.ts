import type { Queryable } from "../core/ports.js";
import type { Unplaced } from "../postgres/workflow/place.js";
import { beginTry, endTry } from "../postgres/workflow/try.js";
import type { PlaceCrew } from "./place.js";

/**
 * Runs the user's code for nodes that this transaction has locked. The try is recorded and committed beforehand, on
 * another connection: a schema or a key function that kills the process is counted too, and finally fails its node. The
 * transaction that places the nodes deletes the record.
 */
export async function trying<T>(
  o: PlaceCrew,
  nodes: readonly Pick<Unplaced, "run" | "node">[],
  tx: Queryable,
  work: () => Promise<T>,
): Promise<T> {
  // guard: a try is counted before the user's code runs -> test/fault/place.test.ts: "a key function that kills its process fails its node eventually, and other nodes and tasks continue"
  const id = /* guard:try */ await beginTry(o.db, nodes, o.worker?.() ?? null); /* end */
  try {
    const result = await work();
    await endTry(o.db, id, tx);
    return result;
  } catch (e) {
    // Before the rows are unlocked, so that no process takes it for the record of a dead one. If this fails, the try
    // counts.
    await endTry(o.db, id).catch(() => {});
    throw e;
  }
}
