import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { batchValues, type TaskBatch } from "../enqueue.js";
import { statement } from "../statement.js";

/** A node of one task that code must place, with its input. We hold a lock on its row until the transaction ends. */
export interface SmallNode {
  readonly run: string;
  readonly node: number;
  readonly stream: number;
  /** Overrides the type's priority, if not null. */
  readonly priority: number | null;
  readonly attempts: number | null;
  /** JSON text. */
  readonly input: string;
}

type SmallRow = { readonly [K in keyof SmallNode]: SmallNode[K] | null };

const takeStatement = statement<SmallRow>({
  name: "workflow_take_small",
  text: "select run::text as run, node, stream, priority, attempts, input from sluice.workflow_take_small($1::text::int[], $2, $3)",
  params: ["text", "int4", "int4"],
  columns: ["run", "node", "stream", "priority", "attempts", "input"],
});

/** Nodes of these streams to place, and whether there are others that must be locked one by one. */
export interface SmallTaken {
  readonly nodes: SmallNode[];
  readonly others: boolean;
}

/**
 * Locks many nodes of one task each that are not locked yet. Runs in a transaction, which the server ends if it is idle
 * for half a minute.
 */
export async function takeSmall(
  db: Database,
  streams: readonly number[],
  { max, bytes }: { readonly max: number; readonly bytes: number },
  tx: Queryable,
): Promise<SmallTaken> {
  const rows = await db.run(takeStatement, [`{${streams.join(",")}}`, max, bytes], tx);
  const nodes = rows.filter((row): row is SmallNode => row.run !== null);
  return { nodes, others: nodes.length < rows.length };
}

const placeStatement = statement<{ placed: string }>({
  name: "workflow_place_small",
  text: "select sluice.workflow_place_small($1::text::bigint[], $2::text::bigint[], $3::text::smallint[], $4, $5, $6, $7, $8::text::int[], $9, $10, $11)::text as placed",
  params: ["text", "text", "text", "int4", "int4", "int4", "text", "text", "text", "text", "bool"],
  columns: ["placed"],
});

/**
 * Inserts the tasks of nodes and makes them runnable, in the transaction that locked the nodes: the n-th input of the
 * batch belongs to the n-th node. lock: the runs of all locked nodes, given with the first of several calls. Throws
 * `workflow_over` if a node is no longer wanted.
 */
export async function placeSmallTasks(
  db: Database,
  nodes: readonly Pick<SmallNode, "run" | "node">[],
  lock: readonly string[],
  batch: TaskBatch,
  tx: Queryable,
): Promise<void> {
  const list = (items: readonly (string | number)[]): string => `{${items.join(",")}}`;
  const runs = list(nodes.map(({ run }) => run));
  const numbers = list(nodes.map(({ node }) => node));
  await db.run(placeStatement, [list(lock), runs, numbers, ...batchValues(batch)], tx);
}
