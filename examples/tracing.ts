import { context, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { Sluice, task, type } from "../src/index.js";

// Your program registers an SDK, as for any other library. Here the spans go to memory, to be shown below.
const spans = new InMemorySpanExporter();
const spanProcessors = [new SimpleSpanProcessor(spans)];
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const tracer = trace.getTracer("shop");

const sendMail = task("send-mail", { input: type<{ to: string }>() });
const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
const worker = sluice.worker({
  handlers: [
    sendMail.handle(async ({ to }) => {
      // A child of the execution, because the handler runs in its context.
      await tracer.startActiveSpan("smtp", async (span) => {
        span.setAttribute("mail.to", to);
        span.end();
      });
    }),
  ],
});
await worker.start();

await tracer.startActiveSpan("POST /orders", async (span) => {
  const mail = await sluice.enqueue(sendMail, { to: "ada@example.com" });
  span.end();
  await mail.result();
});
await sluice.close();

const finished = spans.getFinishedSpans();
const nameOf = (id: string | undefined): string =>
  finished.find((span) => span.spanContext().spanId === id)?.name ?? "none";
for (const name of ["POST /orders", "enqueue send-mail", "run send-mail", "smtp"]) {
  const span = finished.find((one) => one.name === name)!;
  const links = span.links.map((link) => nameOf(link.context.spanId));
  const kind = SpanKind[span.kind].toLowerCase();
  const parent = nameOf(span.parentSpanContext?.spanId);
  console.log(`${name}: ${kind}, parent ${parent}, links to ${links.join() || "none"}`);
}
