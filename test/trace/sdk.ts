import { context, trace, type SpanContext } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { onTestFinished } from "vitest";
import { until } from "../flow/scene.js";

/** The spans of one test. */
export interface Seen {
  /** The ended spans of this name. Waits until there are this many. */
  spans(name: string, count?: number): Promise<ReadableSpan[]>;
  all(): readonly ReadableSpan[];
}

/** Registers an SDK for the duration of a test, as a program would. */
export function registerSdk(...more: SpanProcessor[]): Seen {
  const exporter = new InMemorySpanExporter();
  const spanProcessors = [new SimpleSpanProcessor(exporter), ...more];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  onTestFinished(() => {
    trace.disable();
    context.disable();
  });
  const all = (): ReadableSpan[] => exporter.getFinishedSpans();
  return {
    all,
    spans: (name, count = 1) =>
      until(`${count} spans "${name}"`, () => {
        const found = all().filter((span) => span.name === name);
        return found.length >= count && found;
      }),
  };
}

/** The ids by which one span refers to another. */
export function idsOf({ traceId, spanId }: SpanContext): { traceId: string; spanId: string } {
  return { traceId, spanId };
}

/** The ids of the spans that a span links to. */
export function linksOf(span: ReadableSpan): { traceId: string; spanId: string }[] {
  return span.links.map((link) => idsOf(link.context));
}
