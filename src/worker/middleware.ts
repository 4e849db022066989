import type { TaskContext } from "../core/context.js";
import { SluiceError } from "../core/error.js";
import { describeError } from "../core/json.js";
import { checkFunction } from "../core/option.js";
import type { Logger } from "../core/ports.js";

/**
 * Runs around every execution of a handler: `async (ctx, next) => { ...; const result = await next(); ... }`. It must
 * call `next` once. `next` returns the handler's result and throws its error, also what `cancel`, `snooze` and
 * `ctx.map` throw; see `isOutcome`. The return value is ignored. An error that a middleware throws fails the execution,
 * unless the handler has failed: then the handler's error counts.
 */
export type Middleware = (ctx: TaskContext, next: () => Promise<unknown>) => unknown;

/** The middleware of a process, in the order of use. */
export class MiddlewareChain {
  readonly #log: Logger;
  // Replaced at every change, so that an execution keeps the list it began with.
  #list: readonly Middleware[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  get empty(): boolean {
    return this.#list.length === 0;
  }

  /** Returns a function that removes the middleware. */
  use(middleware: Middleware): () => void {
    checkFunction("middleware", middleware);
    // A function of its own, so that a middleware that was added twice is removed once.
    const mine: Middleware = (ctx, next) => middleware(ctx, next);
    this.#list = [...this.#list, mine];
    return () => void (this.#list = this.#list.filter((other) => other !== mine));
  }

  /** Runs the handler inside every middleware. */
  run(ctx: TaskContext, handler: () => unknown): Promise<unknown> {
    return this.#from(this.#list, ctx, handler);
  }

  async #from([first, ...rest]: readonly Middleware[], ctx: TaskContext, handler: () => unknown): Promise<unknown> {
    if (first === undefined) return handler();
    let inner: Promise<unknown> | null = null;
    let over = false;
    const next = (): Promise<unknown> => {
      if (inner !== null || over) return Promise.reject(calledAgain());
      inner = this.#from(rest, ctx, handler);
      // A middleware that does not await it is no reason for an unhandled rejection: it is awaited below.
      inner.catch(() => {});
      return inner;
    };
    try {
      await first(ctx, next);
    } catch (e) {
      over = true;
      // guard: a handler's failure is not replaced -> test/worker/middleware.test.ts: "the error of a handler stands, whatever its middleware catches or throws"
      /* guard:failed */ await this.#unlessFailed(inner, e); /* end */
      throw e;
    }
    over = true;
    if (inner === null) throw notCalled();
    return inner;
  }

  /** Waits for the handler, and throws its error in place of the middleware's. */
  async #unlessFailed(inner: Promise<unknown> | null, e: unknown): Promise<void> {
    try {
      await inner;
    } catch (cause) {
      if (cause !== e) {
        const error = describeError(e).message;
        this.#log.warn("a middleware threw after the handler had failed; the handler's error counts", { error });
      }
      throw cause;
    }
  }
}

function notCalled(): SluiceError {
  return new SluiceError(
    "invalid_option",
    "a middleware returned without calling next(), so the handler did not run: call next(), or throw cancel() or " +
      "snooze() to end the execution without it",
    { details: { option: "middleware" } },
  );
}

function calledAgain(): SluiceError {
  return new SluiceError("invalid_option", "a middleware may call next() once, before it returns", {
    details: { option: "middleware" },
  });
}
