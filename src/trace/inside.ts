import type { Span } from "@opentelemetry/api";
import type { Api } from "./api.js";

/**
 * Calls fn with the span active. If a context manager fails before it calls fn, only the context is lost, not the call.
 * Errors from fn are passed on.
 */
export function inside<T>(api: Api, span: Span, parent: () => ReturnType<Api["context"]["active"]>, fn: () => T): T {
  let called = false;
  const once = (): T => {
    called = true;
    return fn();
  };
  try {
    return api.context.with(api.trace.setSpan(parent(), span), once);
  } catch (e) {
    if (called) throw e;
    return fn();
  }
}
