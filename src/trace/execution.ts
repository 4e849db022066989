import type { Span } from "@opentelemetry/api";
import type { Api } from "./api.js";
import { attributesOf, recordError } from "./attributes.js";
import type { Destination } from "./destination.js";
import { inside } from "./inside.js";
import { quietly } from "./quietly.js";
import { spanContextOf } from "./stored.js";
import { tracingNow } from "./tracer.js";

/** The fields of an executing task that its span records. */
interface TracedTask {
  readonly claim: { readonly id: string };
  readonly attempt: number;
  /** As stored by enqueue. */
  readonly trace: string | null;
}

/**
 * The span of one execution. It is the root of its own trace, with a link to the enqueue, rather than a child of it: a
 * task may wait for days, be retried many times, or share its enqueue with a million others, and one trace of all that
 * would never be complete. Every attempt has its own span with the same link.
 */
export class ExecutionSpan {
  readonly #api: Api;
  readonly #span: Span;

  private constructor(api: Api, span: Span) {
    this.#api = api;
    this.#span = span;
  }

  /** Null if tracing is off. */
  static begin(task: TracedTask, to: Destination): ExecutionSpan | null {
    const tracing = tracingNow();
    return tracing === null ? null : (quietly(() => ExecutionSpan.#make(tracing, task, to)) ?? null);
  }

  static #make(
    { api, tracer }: NonNullable<ReturnType<typeof tracingNow>>,
    task: TracedTask,
    { type, queue }: Destination,
  ): ExecutionSpan {
    const enqueued = task.trace === null ? null : spanContextOf(api, task.trace);
    const options = {
      kind: api.SpanKind.CONSUMER,
      links: enqueued === null ? [] : [{ context: enqueued }],
      attributes: {
        ...attributesOf({ type, queue }, { name: "run", type: "process" }),
        "messaging.message.id": task.claim.id,
        "messaging.sluice.attempt": task.attempt,
      },
    };
    return new ExecutionSpan(api, tracer.startSpan(`run ${type}`, options, api.ROOT_CONTEXT));
  }

  /** Calls fn so that spans it creates, now or later, are children of this one. */
  within<T>(fn: () => T): T {
    // Do not use the context that started the worker: the execution is unrelated to it.
    return inside(this.#api, this.#span, () => this.#api.ROOT_CONTEXT, fn);
  }

  /** Records why the attempt failed. */
  failed(error: unknown): void {
    quietly(() => recordError(this.#span, error));
  }

  end(outcome: string): void {
    quietly(() => {
      this.#span.setAttribute("messaging.sluice.outcome", outcome);
      this.#span.end();
    });
  }
}
