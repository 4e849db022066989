// A process with its own SDK. It prints every span as a line of JSON when the span ends.
//   program.ts produce <url>: enqueues two tasks within a span, one of them in bulk, and ends.
//   program.ts work <url>: runs tasks until SIGTERM.
import { context, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, SimpleSpanProcessor, type ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { Sluice, task, type } from "../../src/index.js";

/** A printed span. */
export interface PrintedSpan {
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: string | null;
  readonly links: { readonly traceId: string; readonly spanId: string }[];
}

function print(span: ReadableSpan): void {
  const { traceId, spanId } = span.spanContext();
  const printed: PrintedSpan = {
    name: span.name,
    kind: SpanKind[span.kind],
    traceId,
    spanId,
    parent: span.parentSpanContext?.spanId ?? null,
    links: span.links.map((link) => ({
      traceId: link.context.traceId,
      spanId: link.context.spanId,
    })),
  };
  console.log(JSON.stringify(printed));
}

const exporter = {
  export: (spans: ReadableSpan[]) => spans.forEach(print),
  shutdown: async () => {},
};
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const tracer = trace.getTracer("program");

const [role, url] = process.argv.slice(2) as [string, string];
const single = task("single", { input: type<string>() });
const bulk = task("bulk", { input: type<string>() });
const sluice = await Sluice.connect({ url, migrate: false });

if (role === "produce") {
  await tracer.startActiveSpan("request", async (span) => {
    await sluice.enqueue(single, "a");
    await sluice.enqueueMany(bulk, ["b", "c"]);
    span.end();
  });
  await sluice.close();
} else {
  const work = async (name: string): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    tracer.startSpan(`inside ${name}`).end();
  };
  await sluice.worker({ handlers: [single.handle(work), bulk.handle(work)] }).start();
  process.once("SIGTERM", () => void sluice.close());
}
