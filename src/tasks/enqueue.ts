import type { EnqueueOptions } from "../core/enqueue.js";
import { isSluiceError } from "../core/error.js";
import type { TotalLimit } from "../core/limit.js";
import type { Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "../postgres/database.js";
import { enqueue as insert, type EnqueueBatch, type Enqueued } from "../postgres/enqueue.js";
import { traceEnqueue } from "../trace/enqueue.js";
import { batchOf } from "./batch.js";
import { Batcher, type SendBatch } from "./batcher.js";
import type { Declarations } from "./declarations.js";
import { idempotencyKeyOf, prepare, shared, type Prepared, type Shared } from "./prepare.js";
import { checkTx } from "./tx.js";

/** What enqueue needs to know besides its arguments. */
export interface Desk {
  readonly db: Database;
  readonly declarations: Declarations;
  readonly payloadBytesMax: number;
  readonly idempotencyMs: number;
  /** Whether spans are made, where an SDK is registered. */
  readonly tracing: boolean;
}

/** Tasks that share stream, limits and options: one statement. */
interface Batch {
  readonly items: readonly Prepared[];
  readonly idempotency: readonly string[];
  /** The span that enqueues them: one for all, or one for each. */
  readonly traces: readonly (string | null)[];
}

// A larger input costs more than its statement, and would hold up those that it is sent with.
const SHARED_INPUT_LENGTH_MAX = 64 * 1024;

/**
 * Enqueues one task: checked here, and inserted in one statement, which concurrent calls share. Not shared are
 * - a caller's transaction;
 * - idempotency keys: each is a lock, for which the other calls would wait, and which could deadlock with a transaction
 *   that takes the same keys in another order.
 */
export async function enqueueOne(
  desk: Desk,
  batcher: Batcher,
  terms: TaskTerms<never>,
  input: unknown,
  options: EnqueueOptions,
): Promise<{ readonly id: string; readonly existed: boolean }> {
  const common = shared(terms, options);
  const idempotency = [idempotencyKeyOf(options.idempotencyKey)];
  const tx = checkTx(options.tx);
  const item = await prepare(terms, input, desk.payloadBytesMax);
  const isLarge = item.input.length > SHARED_INPUT_LENGTH_MAX && item.order === null;
  if (tx === undefined && idempotency[0] === "" && !isLarge) {
    const sendShared = async (trace: string | null): Promise<Enqueued> => ({
      ids: [await batcher.add(terms, common, item, trace)],
      existed: null,
    });
    return oneOf(await traced(desk, terms, sendShared));
  }
  return oneOf(await sendOne(desk, terms, common, { items: [item], idempotency }, tx));
}

function oneOf({ ids, existed }: Enqueued): { readonly id: string; readonly existed: boolean } {
  return { id: ids[0]!, existed: existed?.[0] ?? false };
}

/** Sends what concurrent calls share. */
export function batcherOf(desk: Desk): Batcher {
  const sendBatch: SendBatch = async (terms, common, { items, traces }) => {
    const { ids } = await send(desk, terms, common, { items, idempotency: [], traces });
    return ids;
  };
  return new Batcher(sendBatch, desk.db.apiConnections);
}

/** Sends one task, in a span. */
export function sendOne(
  desk: Desk,
  terms: TaskTerms<never>,
  common: Shared,
  item: Omit<Batch, "traces">,
  tx?: Queryable,
): Promise<Enqueued> {
  return traced(desk, terms, (trace) => send(desk, terms, common, { ...item, traces: [trace] }, tx));
}

/** Enqueues one task in a span. */
function traced(
  desk: Desk,
  { type, queue }: TaskTerms<never>,
  work: (trace: string | null) => Promise<Enqueued>,
): Promise<Enqueued> {
  return traceEnqueue(desk.tracing, {
    type,
    queue,
    work,
    made: ({ ids, existed }) => ({
      "messaging.message.id": ids[0]!,
      ...(existed?.[0] === true ? { "messaging.sluice.existed": true } : {}),
    }),
  });
}

/** Sends a batch whose items all have the same limits. */
export async function send(
  desk: Desk,
  terms: TaskTerms<never>,
  common: Shared,
  batch: Batch,
  tx?: Queryable,
): Promise<Enqueued> {
  const attempt = async (): Promise<Enqueued> => {
    const stream = await desk.declarations.stream(terms);
    return insert(desk.db, await enqueueBatch(desk, terms, common, batch, stream), tx);
  };
  try {
    return await attempt();
  } catch (e) {
    if (!isSluiceError(e, "unknown_limit")) throw e;
    // Somebody has removed a limit that we had declared. A transaction that failed cannot go on.
    desk.declarations.forget();
    if (tx !== undefined) throw e;
    return attempt();
  }
}

async function enqueueBatch(
  desk: Desk,
  terms: TaskTerms<never>,
  common: Shared,
  { items, idempotency, traces }: Batch,
  stream: number,
): Promise<EnqueueBatch> {
  const { priority, group } = common;
  const batch = await batchOf(desk.declarations, terms, items, { stream, priority, attempts: terms.attempts });
  return {
    ...batch,
    limits: group === null ? batch.limits : await withGroup(desk, stream, group, batch.limits),
    runAt: common.runAt,
    delayMs: common.delayMs,
    idempotency: idempotency.some((k) => k !== "") ? idempotency : null,
    idempotencyMs: desk.idempotencyMs,
    traces: traces.some((t) => t !== null) ? traces.map((t) => t ?? "") : null,
  };
}

/** A group that the task passes anyway adds nothing: passed twice it would take two slots. */
async function withGroup(
  desk: Desk,
  stream: number,
  group: TotalLimit,
  limits: readonly number[],
): Promise<readonly number[]> {
  const id = await desk.declarations.group(stream, group);
  return limits.includes(id) ? limits : [...limits, id];
}
