import type { Attributes, Span } from "@opentelemetry/api";
import { describeError } from "../core/json.js";
import type { Destination } from "./destination.js";

/** The attributes of every span, by the semantic conventions for messaging. */
export function attributesOf(
  { type, queue }: Destination,
  operation: { readonly name: string; readonly type: "send" | "process" },
): Attributes {
  return {
    "messaging.system": "sluice",
    "messaging.operation.name": operation.name,
    "messaging.operation.type": operation.type,
    "messaging.destination.name": queue,
    "messaging.sluice.type": type,
  };
}

// SpanStatusCode.ERROR of the API, which may not be loaded.
const ERROR = 2;

/** Records why an operation failed. */
export function recordError(span: Span, error: unknown): void {
  const { name, message, code = name, stack } = describeError(error);
  span.setAttribute("error.type", code);
  span.recordException({ name, message, ...(stack === undefined ? {} : { stack }) });
  span.setStatus({ code: ERROR, message });
}
