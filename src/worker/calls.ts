/** The ctx calls that a handler can forget to await. */
export type CallKind = "enqueue" | "transaction" | "map";

interface Entry {
  readonly kind: CallKind;
  readonly call: Call<unknown>;
  /** Never rejects. */
  readonly over: Promise<void>;
  error?: unknown;
}

/**
 * The calls that a handler has made on its ctx. A call that the handler forgot to await still belongs to its execution:
 * the execution waits for pending calls, and receives the errors of calls that failed before it ended and that no code
 * observed. So no error is lost silently, and none ends the process as an unhandled rejection.
 */
export class Calls {
  readonly #open = new Set<Entry>();
  readonly #failed = new Set<Entry>();

  /** Tracks one call. `unheard` runs if the call failed and no code observes it. */
  follow<T>(kind: CallKind, work: Promise<T>, unheard: (error: unknown) => boolean): Promise<T> {
    const call = new Call<T>((resolve, reject) => void work.then(resolve, reject));
    const succeed = (): void => void this.#open.delete(entry);
    const fail = (error: unknown): void => {
      this.#open.delete(entry);
      this.#failed.add(Object.assign(entry, { error }));
      // Check as late as Node itself decides that a rejection is unhandled.
      setImmediate(() => {
        if (call.heard || unheard(error)) this.#failed.delete(entry);
      });
    };
    const entry: Entry = { kind, call, over: call.watch(succeed, fail) };
    this.#open.add(entry);
    return call;
  }

  /** Whether no call is pending and no failure is unobserved. */
  get quiet(): boolean {
    return this.#open.size === 0 && this.#failed.size === 0;
  }

  /** Waits for pending calls. Throws the error of one of them, or of an earlier call that no code observed. */
  async settled(kind?: CallKind): Promise<void> {
    const concerned = (entry: Entry): boolean => kind === undefined || entry.kind === kind;
    const open = (): Entry[] => [...this.#open].filter(concerned);
    const failed = [...this.#failed].filter((entry) => concerned(entry) && !entry.call.heard);
    for (let under = open(); under.length > 0; under = open()) {
      await Promise.all(under.map(({ over }) => over));
      failed.push(...under.filter((entry) => this.#failed.has(entry) && !entry.call.heard));
    }
    // The caller receives the first error, which stands for all of them: together they are one failure.
    for (const { call } of failed) call.heard = true;
    if (failed[0] !== undefined) throw failed[0].error;
  }
}

/** A promise that records whether any code observes it: `await` calls `then` on a Promise subclass. */
class Call<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  heard = false;

  // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
  override then<A = T, B = never>(
    onfulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onrejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.heard = true;
    return super.then(onfulfilled, onrejected);
  }

  /** Observes the promise without marking it as heard. */
  watch(succeed: () => void, fail: (reason: unknown) => void): Promise<void> {
    return super.then(succeed, fail);
  }
}
