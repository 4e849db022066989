import type { Tracer, TracerProvider } from "@opentelemetry/api";
import { apiNow, type Api } from "./api.js";

/** What the API puts before the provider of an SDK, which may be registered at any time, or never. */
interface Proxy extends TracerProvider {
  getDelegate(): TracerProvider;
  getDelegateTracer(name: string): Tracer | undefined;
}

const NAME = "sluice";

/** Who makes spans, and the API they are made with. */
interface Tracing {
  readonly api: Api;
  readonly tracer: Tracer;
}

let known: TracerProvider | null = null;
let tracing: Tracing | null = null;

/**
 * Null while no SDK is registered: then nothing is made and nothing stored. Asked for every enqueue and
 * every execution, because an SDK may come late; costs about 10 ns and makes nothing.
 */
export function tracingNow(): Tracing | null {
  const api = apiNow();
  if (api === null) return null;
  try {
    return lookUp(api);
  } catch {
    // Somebody else's provider: what goes wrong there is not worth a task.
    return null;
  }
}

function lookUp(api: Api): Tracing | null {
  const provider = api.trace.getTracerProvider();
  const behind = isProxy(provider) ? provider.getDelegate() : provider;
  if (behind !== known) {
    const tracer = isProxy(provider) ? provider.getDelegateTracer(NAME) : provider.getTracer(NAME);
    tracing = tracer === undefined ? null : { api, tracer };
    known = behind;
  }
  return tracing;
}

/** By what it can do: several copies of the API may be installed. */
function isProxy(provider: TracerProvider): provider is Proxy {
  return typeof (provider as Partial<Proxy>).getDelegateTracer === "function";
}
