import type { EnqueueOptions } from "../core/enqueue.js";
import { isSluiceError } from "../core/error.js";
import type { Limit, TotalLimit } from "../core/limit.js";
import type { Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "../postgres/database.js";
import { enqueue as insert, type EnqueueBatch, type Enqueued } from "../postgres/enqueue.js";
import { traceEnqueue } from "../trace/enqueue.js";
import { batchOf } from "./batch.js";
import { Batcher, type SendBatch } from "./batcher.js";
import type { Declarations } from "./declarations.js";
import { shapeError } from "../limits/shape.js";
import { idempotencyKeyOf, prepare, shared, type Prepared, type Shared } from "./prepare.js";
import { checkTx } from "./tx.js";

/** The dependencies of enqueue. */
export interface EnqueueServices {
  readonly db: Database;
  readonly declarations: Declarations;
  readonly payloadBytesMax: number;
  readonly idempotencyMs: number;
  /** Whether to create spans if an OpenTelemetry SDK is registered. */
  readonly tracing: boolean;
}

/** Tasks that share stream, limits and options: one statement inserts them. */
interface Batch {
  readonly items: readonly Prepared[];
  readonly idempotency: readonly string[];
  /** The trace contexts of the enqueuing spans: one for all tasks, or one for each. */
  readonly traces: readonly (string | null)[];
}

// A larger input costs more than its statement, and would delay the calls that share it.
const SHARED_INPUT_LENGTH_MAX = 64 * 1024;

/**
 * Enqueues one task: checks it, then inserts it in a statement that concurrent calls share. These calls use a statement
 * of their own:
 * - calls with a caller's transaction;
 * - calls with an idempotency key: each key is a lock that the other calls would wait for, and it could deadlock with a
 *   transaction that takes the same keys in another order.
 */
export async function enqueueOne(
  services: EnqueueServices,
  batcher: Batcher,
  terms: TaskTerms<never>,
  input: unknown,
  options: EnqueueOptions,
): Promise<{ readonly id: string; readonly existed: boolean }> {
  const common = shared(terms, options);
  const idempotency = [idempotencyKeyOf(options.idempotencyKey)];
  const tx = checkTx(options.tx);
  const item = await prepare(terms, input, services.payloadBytesMax);
  const isLarge = item.input.length > SHARED_INPUT_LENGTH_MAX && item.order === null;
  if (tx === undefined && idempotency[0] === "" && !isLarge) {
    const sendShared = async (trace: string | null): Promise<Enqueued> => ({
      ids: [await batcher.add(terms, common, item, trace)],
      existed: null,
    });
    return oneOf(await traced(services, terms, sendShared));
  }
  return oneOf(await sendOne(services, terms, common, { items: [item], idempotency }, tx));
}

/** The only task of an enqueue. */
export function oneOf({ ids, existed }: Enqueued): { readonly id: string; readonly existed: boolean } {
  return { id: ids[0]!, existed: existed?.[0] ?? false };
}

/** Creates the batcher for concurrent calls. */
export function batcherOf(services: EnqueueServices): Batcher {
  const sendBatch: SendBatch = async (terms, common, { items, traces }) => {
    const { ids } = await send(services, terms, common, { items, idempotency: [], traces });
    return ids;
  };
  return new Batcher(sendBatch, services.db.apiConnections);
}

/** Sends one task in a span. */
export function sendOne(
  services: EnqueueServices,
  terms: TaskTerms<never>,
  common: Shared,
  item: Omit<Batch, "traces">,
  tx?: Queryable,
): Promise<Enqueued> {
  return traced(services, terms, (trace) => send(services, terms, common, { ...item, traces: [trace] }, tx));
}

/** Enqueues one task in a span. */
function traced(
  services: EnqueueServices,
  { type, queue }: TaskTerms<never>,
  work: (trace: string | null) => Promise<Enqueued>,
): Promise<Enqueued> {
  return traceEnqueue(services.tracing, {
    type,
    queue,
    work,
    made: ({ ids, existed }) => ({
      "messaging.message.id": ids[0]!,
      ...(existed?.[0] === true ? { "messaging.sluice.existed": true } : {}),
    }),
  });
}

/** Sends a batch of items that all have the same limits. */
export async function send(
  services: EnqueueServices,
  terms: TaskTerms<never>,
  common: Shared,
  batch: Batch,
  tx?: Queryable,
): Promise<Enqueued> {
  const attempt = async (): Promise<Enqueued> => {
    const stream = await services.declarations.stream(terms);
    return insert(services.db, await enqueueBatch(services, terms, common, batch, stream), tx);
  };
  try {
    return await attempt();
  } catch (e) {
    if (!isSluiceError(e, "unknown_limit")) throw await shapeError(services.db, terms, limitsOf(common, batch), e);
    // A limit declared by this process has been removed. A failed transaction cannot continue.
    services.declarations.forget();
    if (tx !== undefined) throw e;
    return attempt();
  }
}

function limitsOf({ group }: Shared, { items }: Batch): readonly Limit[] {
  const limits = items[0]!.limits.map(({ limit }) => limit);
  return group === null ? limits : [...limits, group];
}

async function enqueueBatch(
  services: EnqueueServices,
  terms: TaskTerms<never>,
  common: Shared,
  { items, idempotency, traces }: Batch,
  stream: number,
): Promise<EnqueueBatch> {
  const { priority, group } = common;
  const batch = await batchOf(services.declarations, terms, items, { stream, priority, attempts: terms.attempts });
  return {
    ...batch,
    limits: group === null ? batch.limits : await withGroup(services, stream, group, batch.limits),
    runAt: common.runAt,
    delayMs: common.delayMs,
    idempotency: idempotency.some((k) => k !== "") ? idempotency : null,
    idempotencyMs: services.idempotencyMs,
    traces: traces.some((t) => t !== null) ? traces.map((t) => t ?? "") : null,
  };
}

/** Adds the group unless the task already passes it: passing it twice would take two slots. */
async function withGroup(
  services: EnqueueServices,
  stream: number,
  group: TotalLimit,
  limits: readonly number[],
): Promise<readonly number[]> {
  const id = await services.declarations.group(stream, group);
  return limits.includes(id) ? limits : [...limits, id];
}
