import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import type { Runner } from "../schedule.js";
import { batchValues, type TaskBatch } from "../enqueue.js";
import { statement } from "../statement.js";

/**
 * A node whose tasks must be created by code, which can compute their keys. We hold a lock on its row until the
 * transaction ends.
 */
export interface Unplaced {
  readonly run: string;
  readonly node: number;
  readonly stream: number;
  /** Number of tasks: the items of an each, or one. */
  readonly total: number;
  /** Overrides the type's priority, if not null. */
  readonly priority: number | null;
  readonly attempts: number | null;
}

type UnplacedRow = { readonly [K in keyof Unplaced]: Unplaced[K] | null } & {
  readonly again: boolean;
};

const takeStatement = statement<UnplacedRow>({
  name: "workflow_take",
  text: "select run::text as run, node, stream, total, priority, attempts, again from sluice.workflow_take($1::text::int[])",
  params: ["text"],
  columns: ["run", "node", "stream", "total", "priority", "attempts", "again"],
});

/**
 * Locks one node in these streams that must be placed and is not locked, or returns null. Runs in a transaction, which
 * the server ends if it is idle for half a minute. "again": a node that is no longer wanted was removed; commit that,
 * and call again.
 */
export async function takeUnplaced(
  db: Database,
  streams: readonly number[],
  tx: Queryable,
): Promise<Unplaced | "again" | null> {
  const { again, ...row } = await db.one(takeStatement, [`{${streams.join(",")}}`], tx);
  if (again) return "again";
  return row.run === null ? null : (row as Unplaced);
}

const inputsStatement = statement<{ inputs: string }>({
  name: "workflow_inputs",
  text: "select sluice.workflow_inputs($1, $2, $3, $4) as inputs",
  params: ["int8", "int2", "int4", "int4"],
  columns: ["inputs"],
});

/** Rendered inputs from a given item on, at most max, as the text of a JSON list. */
export async function renderInputs(
  db: Database,
  { run, node }: Pick<Unplaced, "run" | "node">,
  piece: { readonly from: number; readonly max: number },
  tx?: Queryable,
): Promise<string> {
  return (await db.one(inputsStatement, [run, node, piece.from, piece.max], tx)).inputs;
}

/** Tasks for consecutive items of a node. */
export interface PlacedBatch extends TaskBatch {
  readonly from: number;
}

const placeStatement = statement<{ placed: string }>({
  name: "workflow_place",
  text: "select sluice.workflow_place($1, $2, $3, $4, $5, $6, $7, $8::text::int[], $9, $10, $11)::text as placed",
  params: ["int8", "int2", "int4", "int4", "int4", "int4", "text", "text", "text", "text", "bool"],
  columns: ["placed"],
});

/** Inserts tasks of a node. All batches, and `placed`, belong in the transaction that locked the node. */
export async function placeTasks(
  db: Database,
  { run, node }: Pick<Unplaced, "run" | "node">,
  batch: PlacedBatch,
  tx: Queryable,
): Promise<void> {
  const values = [run, node, batch.from, ...batchValues(batch)];
  await db.run(placeStatement, values, tx);
}

const placedStatement = statement<{ placed: boolean }>({
  name: "workflow_placed",
  text: "select sluice.workflow_placed($1, $2) as placed",
  params: ["int8", "int2"],
  columns: ["placed"],
});

/** The last call of a placement, before the commit. False: the node is no longer wanted, roll back. */
export async function placed(
  db: Database,
  { run, node }: Pick<Unplaced, "run" | "node">,
  tx: Queryable,
): Promise<boolean> {
  return (await db.one(placedStatement, [run, node], tx)).placed;
}

const misplacedStatement = statement<{ failed: boolean }>({
  name: "workflow_misplaced",
  text: "select sluice.workflow_misplaced($1, $2, $3) as failed",
  params: ["int8", "int2", "json"],
  columns: ["failed"],
});

/**
 * Fails a node whose inputs do not fit its task's schema. error: JSON text. Not in the transaction that locked the
 * node, unless nothing was placed there and the transaction created the run.
 */
export async function misplaced(
  db: Database,
  { run, node }: Pick<Unplaced, "run" | "node">,
  error: string,
  tx?: Queryable,
): Promise<boolean> {
  return (await db.one(misplacedStatement, [run, node, error], tx)).failed;
}

const putOffStatement = statement<{ noted: boolean }>({
  name: "workflow_put_off",
  text: "select sluice.workflow_put_off($1, $2, $3, $4) as noted",
  params: ["int8", "int2", "text", "text"],
  columns: ["noted"],
});

/**
 * Puts off a node that could not be placed for a reason that may pass: it is retried later, after others. The tenth
 * time, it fails. Not in the transaction that locked the node.
 */
export async function putOff(
  db: Database,
  { run, node }: Pick<Unplaced, "run" | "node">,
  why: { readonly code: string; readonly message: string },
): Promise<boolean> {
  return (await db.one(putOffStatement, [run, node, why.code, why.message])).noted;
}

const placeManyStatement = statement<{ more: boolean }>({
  name: "workflow_place_many",
  text: "select sluice.workflow_place_many() as more",
  params: [],
  columns: ["more"],
});

/** Creates the tasks of one long list that needs no code. False if there is none. */
export async function placeMany(runner: Runner): Promise<boolean> {
  const [row] = await runner.run(placeManyStatement, []);
  return row?.more ?? false;
}
