import type { Attributes, Span } from "@opentelemetry/api";
import type { Api } from "./api.js";
import { attributesOf, recordError } from "./attributes.js";
import type { Destination } from "./destination.js";
import { inside } from "./inside.js";
import { quietly } from "./quietly.js";
import { traceText } from "./stored.js";
import { tracingNow } from "./tracer.js";

interface Enqueue<T> extends Destination {
  /** Inserts the tasks, and stores `trace` with each of them. */
  readonly work: (trace: string | null) => Promise<T>;
  /** The span attributes that describe the inserted tasks. */
  readonly made: (done: T) => Attributes;
}

/**
 * Enqueues within a new span, whose context is stored with the tasks. Its kind is PRODUCER because the executions link
 * to it. One span covers a whole batch, so a million tasks are not a million spans.
 */
export async function traceEnqueue<T>(on: boolean, enqueue: Enqueue<T>): Promise<T> {
  const begun = on ? begin(enqueue) : null;
  if (begun === null) return enqueue.work(null);
  const { span, api } = begun;
  const stored = quietly(() => traceText(api, span.spanContext())) ?? null;
  try {
    const done = await inside(
      api,
      span,
      () => api.context.active(),
      () => enqueue.work(stored),
    );
    quietly(() => span.setAttributes(enqueue.made(done)));
    return done;
  } catch (e) {
    quietly(() => recordError(span, e));
    throw e;
  } finally {
    quietly(() => span.end());
  }
}

/**
 * Binds work to the current tracing context, so that it runs as if called here, even if it is called later and
 * elsewhere.
 */
export function boundHere<A extends unknown[], R>(on: boolean, work: (...args: A) => R): (...args: A) => R {
  const context = on ? tracingNow()?.api.context : undefined;
  if (context === undefined) return work;
  return quietly(() => context.bind(context.active(), work)) ?? work;
}

function begin(to: Destination): { readonly span: Span; readonly api: Api } | null {
  const tracing = tracingNow();
  if (tracing === null) return null;
  const { api, tracer } = tracing;
  const span = quietly(() => {
    const attributes = attributesOf(to, { name: "enqueue", type: "send" });
    return tracer.startSpan(`enqueue ${to.type}`, { kind: api.SpanKind.PRODUCER, attributes });
  });
  return span === undefined ? null : { span, api };
}
