import type { Span } from "@opentelemetry/api";
import type { Api } from "./api.js";
import { attributesOf, recordError } from "./attributes.js";
import type { Destination } from "./destination.js";
import { inside } from "./inside.js";
import { quietly } from "./quietly.js";
import { spanContextOf } from "./stored.js";
import { tracingNow } from "./tracer.js";

/** A task in hand, by what its span says. */
interface TracedTask {
  readonly claim: { readonly id: string };
  readonly attempt: number;
  /** As it was stored by enqueue. */
  readonly trace: string | null;
}

/**
 * The span of one execution. It is the root of a trace of its own, with a link to the enqueue, and no child of
 * it: a task may wait for days, run again many times, or share its enqueue with a million others, and one
 * trace of all that would never be complete. Every attempt has its own span with the same link.
 */
export class ExecutionSpan {
  readonly #api: Api;
  readonly #span: Span;

  private constructor(api: Api, span: Span) {
    this.#api = api;
    this.#span = span;
  }

  /** Null while nobody traces. */
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

  /** Calls fn so that the spans it makes, now or later, are children of this one. */
  within<T>(fn: () => T): T {
    // Not the context of whoever started the worker: an execution has nothing to do with that.
    return inside(this.#api, this.#span, () => this.#api.ROOT_CONTEXT, fn);
  }

  /** Why the attempt failed. */
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
