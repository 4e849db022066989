import type { SpanContext } from "@opentelemetry/api";
import type { Api } from "./api.js";

// A traceparent has 55 characters; the rest is for the tracestate.
const TRACE_LENGTH_MAX = 512;
const PARENT_LENGTH = 55;
const PARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})( |$)/;
const PRINTABLE = /^[\x20-\x7e]+$/;

/**
 * A span as stored with the tasks that it enqueues: W3C trace context, that is the traceparent, then a space and the
 * tracestate if there is one. This does not use the process's propagator: the process that runs the task may use a
 * different one, which could not read it.
 */
export function traceText(api: Api, span: SpanContext): string | null {
  if (!api.isSpanContextValid(span)) return null;
  const { traceId, spanId, traceFlags } = span;
  const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
  const parent = `00-${traceId}-${spanId}-${flags}`.toLowerCase();
  const state = span.traceState?.serialize() ?? "";
  // Any code can set the tracestate: one that cannot be stored, or is too long, must not cost the link.
  const fits = state.length < TRACE_LENGTH_MAX - PARENT_LENGTH && PRINTABLE.test(state);
  return fits ? `${parent} ${state}` : parent;
}

/** The span that enqueued a task. Null for text that is not a trace context: SQL may store anything. */
export function spanContextOf(api: Api, text: string): SpanContext | null {
  const found = PARENT.exec(text);
  if (found === null) return null;
  const state = text.slice(PARENT_LENGTH + 1);
  const span = {
    traceId: found[1]!,
    spanId: found[2]!,
    traceFlags: Number.parseInt(found[3]!, 16),
    isRemote: true,
    ...(state === "" ? {} : { traceState: api.createTraceState(state) }),
  };
  return api.isSpanContextValid(span) ? span : null;
}
