import type { EnqueueOptions } from "../core/enqueue.js";
import { isSluiceError, SluiceError } from "../core/error.js";
import { checkFunction, checkOptions } from "../core/option.js";
import { ask } from "../core/place.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";
import type { Enqueued } from "../postgres/enqueue.js";
import { traceEnqueue } from "../trace/enqueue.js";
import { send, type EnqueueServices } from "./enqueue.js";
import { ENQUEUE_OPTIONS, idempotencyKeyOf, prepare, sameLimits, shared, type Prepared } from "./prepare.js";
import { checkTx } from "./tx.js";

/** Options of a bulk enqueue; the idempotency key is a function of each input. */
export interface EnqueueManyOptions<Input> extends Omit<EnqueueOptions, "idempotencyKey"> {
  readonly idempotencyKey?: (input: Input) => string | undefined;
}

/** The result of a bulk enqueue, in the order of the inputs. */
export class EnqueuedMany implements Iterable<string> {
  // Stored as numbers, not strings: a million ids take 8 MB.
  readonly #chunks: Float64Array[] = [];
  #count = 0;
  #existed = 0;

  /** The number of tasks created or, under an idempotency key, found. */
  get count(): number {
    return this.#count;
  }

  /** The number of tasks found under their idempotency key. */
  get existed(): number {
    return this.#existed;
  }

  *[Symbol.iterator](): Iterator<string> {
    for (const chunk of this.#chunks) for (const id of chunk) yield String(id);
  }

  /** Returns the ids as a list. */
  ids(): string[] {
    return [...this];
  }

  /** Used by console.log, which would otherwise show none of the private fields. */
  [Symbol.for("nodejs.util.inspect.custom")](_: number, options: object, inspect: Inspect): string {
    const { count, existed } = this;
    const [first] = this;
    return `EnqueuedMany ${inspect({ count, existed, first }, options)}`;
  }

  /** @internal */
  add(done: Enqueued): void {
    this.#chunks.push(Float64Array.from(done.ids, Number));
    this.#count += done.ids.length;
    for (const e of done.existed ?? []) if (e) this.#existed++;
  }
}

type Inspect = (value: unknown, options: object) => string;

const CHUNK_TASKS_MAX = 1000;
const CHUNK_BYTES_MAX = 4 * 1024 * 1024;

interface Chunk {
  readonly items: Prepared[];
  readonly idempotency: string[];
  bytes: number;
}

/**
 * Enqueues a stream of inputs in bounded memory. Chunks are sent one after the other, so ids follow the order of the
 * inputs, and so do tasks of one order key. The next chunk is encoded while the previous one is sent. The details of an
 * error contain the index of the refused input (`index`, from 0) and the number of earlier inputs that are enqueued
 * (`enqueued`); within a transaction, those roll back with it.
 */
export async function enqueueMany<Input>(
  services: EnqueueServices,
  terms: TaskTerms<never>,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  options: EnqueueManyOptions<Input>,
): Promise<EnqueuedMany> {
  const { idempotencyKey, ...rest } = checked(options);
  checkInputs(inputs);
  const common = shared(terms, rest);
  const tx = checkTx(options.tx);
  const { type, queue } = terms;
  return traceEnqueue(services.tracing, {
    type,
    queue,
    work: (trace) =>
      sendAll(chunks(services, terms, inputs, idempotencyKey), (chunk) =>
        send(services, terms, common, { ...chunk, traces: [trace] }, tx),
      ),
    made: ({ count }) => ({ "messaging.batch.message_count": count }),
  });
}

/** Sends the chunks one after the other; while one is in flight, the next is encoded. */
async function sendAll(
  chunks: AsyncIterable<Chunk>,
  sendChunk: (chunk: Chunk) => Promise<Enqueued>,
): Promise<EnqueuedMany> {
  const many = new EnqueuedMany();
  const sendOnto = async (chunk: Chunk): Promise<void> => many.add(await sendChunk(chunk));
  let sending: Promise<unknown> = Promise.resolve();
  try {
    try {
      for await (const chunk of chunks) {
        await sending;
        sending = sendOnto(chunk);
        // Awaited in the next iteration or below; until then a failure must not count as unhandled.
        sending.catch(() => {});
      }
    } finally {
      // Also if an input was refused: once the caller gets the error, nothing is in flight.
      await sending;
    }
  } catch (e) {
    throw told(e, `; ${many.count} tasks were already enqueued`, { enqueued: many.count });
  }
  return many;
}

/** Returns the same error with more details. Other errors, such as the stream's own, stay unchanged. */
function told(e: unknown, text: string, details: Record<string, unknown>): unknown {
  if (!isSluiceError(e)) return e;
  return new SluiceError(e.code, e.message + text, {
    details: { ...e.details, ...details },
    ...("cause" in e ? { cause: e.cause } : {}),
  });
}

function checked<Input>(options: EnqueueManyOptions<Input>): EnqueueManyOptions<Input> {
  checkOptions("enqueueMany", options, ENQUEUE_OPTIONS);
  if (options.idempotencyKey !== undefined) checkFunction("idempotencyKey", options.idempotencyKey);
  return options;
}

function checkInputs(inputs: unknown): void {
  const iterable = typeof inputs === "object" && inputs !== null;
  if (iterable && (Symbol.iterator in inputs || Symbol.asyncIterator in inputs)) return;
  throw new SluiceError("invalid_option", `inputs must be an iterable or async iterable, not ${quote(inputs)}`, {
    details: { option: "inputs" },
  });
}

async function* chunks<Input>(
  services: EnqueueServices,
  terms: TaskTerms<never>,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  keyOf: ((input: Input) => string | undefined) | undefined,
): AsyncGenerator<Chunk> {
  let chunk: Chunk = { items: [], idempotency: [], bytes: 0 };
  let index = 0;
  const key = (input: Input): unknown => (keyOf === undefined ? undefined : ask("idempotencyKey", keyOf, input));
  const add = (item: Prepared, input: Input): Chunk | null => {
    const full = isFull(chunk) || differs(chunk, item) ? chunk : null;
    if (full !== null) chunk = { items: [], idempotency: [], bytes: 0 };
    chunk.items.push(item);
    chunk.idempotency.push(idempotencyKeyOf(key(input)));
    chunk.bytes += item.input.length;
    index++;
    return full;
  };
  try {
    if (Symbol.iterator in inputs) {
      // Awaits only promises: an await per input takes half of the time of a bulk enqueue.
      for (const input of inputs) {
        const prepared = prepare(terms, input, services.payloadBytesMax);
        const full = add(prepared instanceof Promise ? await prepared : prepared, input);
        if (full !== null) yield full;
      }
    } else {
      for await (const input of inputs) {
        const full = add(await prepare(terms, input, services.payloadBytesMax), input);
        if (full !== null) yield full;
      }
    }
  } catch (e) {
    throw told(e, ` (input ${index})`, { index });
  }
  if (chunk.items.length > 0) yield chunk;
}

function isFull(chunk: Chunk): boolean {
  return chunk.items.length >= CHUNK_TASKS_MAX || chunk.bytes >= CHUNK_BYTES_MAX;
}

/** Tasks whose limits differ from the first one's need a statement of their own; splitting keeps the order. */
function differs(chunk: Chunk, item: Prepared): boolean {
  const first = chunk.items[0];
  return first !== undefined && !sameLimits(first, item);
}
