import type { Span } from "@opentelemetry/api";
import type { Api } from "./api.js";

/**
 * Calls fn with the span as the active one. A context manager that fails before it has called costs the
 * context and not the call; what fn throws is fn's own.
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
