import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import { statement } from "./statement.js";

/** Tasks of one type that share everything but input and keys. */
export interface TaskBatch {
  readonly stream: number;
  readonly priority: number;
  readonly attempts: number;
  /** JSON texts. */
  readonly inputs: readonly string[];
  /** Ids of the limits that every task of the batch passes, in order. */
  readonly limits: readonly number[];
  /** Per task, its keys for the limits that have keys; null if none has. */
  readonly keys: readonly (readonly string[])[] | null;
  /** Per task, its order key or ''; null if none has one. */
  readonly orders: readonly string[] | null;
  readonly orderBlocks: boolean;
}

/** A batch to enqueue. */
export interface EnqueueBatch extends TaskBatch {
  readonly runAt: Date | null;
  /** Measured by the database's clock; null for no delay. */
  readonly delayMs: number | null;
  /** Per task, its idempotency key or ''; null if none has one. */
  readonly idempotency: readonly string[] | null;
  readonly idempotencyMs: number;
  /** W3C trace context of the caller: one for all tasks, or one per task, '' for none. Null without tracing. */
  readonly traces: readonly string[] | null;
}

/** Ids in the order of the inputs. existed: the task was found by its idempotency key, not created. */
export interface Enqueued {
  readonly ids: readonly string[];
  readonly existed: readonly boolean[] | null;
}

// Arrays are returned as text, so that every driver's transaction gives the same value.
const enqueueMany = statement<{ ids: string; existed: string | null }>({
  name: "enqueue_many",
  text: `select e.ids::text as ids, e.existed::text as existed
    from sluice.enqueue_many($1, $2, $3, $4, $5::text::int[], $6, $7, $8, $9, $10, $11, $12, $13) e`,
  params: [
    "int4",
    "int4",
    "int4",
    "text",
    "text",
    "text",
    "text",
    "bool",
    "timestamptz",
    "text",
    "int8",
    "int8",
    "text",
  ],
  columns: ["ids", "existed"],
});

// Neither JSON text nor a checked key can contain these characters.
const RECORD = "\u001e";
const FIELD = "\u001f";

/** Inserts a batch in one statement: in the caller's transaction, or in its own. */
export async function enqueue(db: Database, batch: EnqueueBatch, tx?: Queryable): Promise<Enqueued> {
  const row = await db.one(enqueueMany, valuesOf(batch), tx);
  return {
    ids: parseArray(row.ids),
    existed: row.existed === null ? null : parseArray(row.existed).map((x) => x === "t"),
  };
}

function valuesOf(batch: EnqueueBatch): unknown[] {
  return [
    ...batchValues(batch),
    batch.runAt === null ? null : batch.runAt.toISOString(),
    batch.idempotency === null ? null : batch.idempotency.join(RECORD),
    batch.idempotencyMs,
    batch.delayMs,
    batch.traces === null ? null : batch.traces.join(RECORD),
  ];
}

/** A batch as the parameters of the functions that insert one, in the order they all share. */
export function batchValues(batch: TaskBatch): unknown[] {
  return [
    batch.stream,
    batch.priority,
    batch.attempts,
    batch.inputs.join(RECORD),
    batch.limits.length === 0 ? null : `{${batch.limits.join(",")}}`,
    batch.keys === null ? null : batch.keys.map((k) => k.join(FIELD)).join(RECORD),
    batch.orders === null ? null : batch.orders.join(RECORD),
    batch.orderBlocks,
  ];
}

/** Parses the text of a PostgreSQL array of numbers or booleans. */
function parseArray(text: string): string[] {
  return text.length <= 2 ? [] : text.slice(1, -1).split(",");
}
