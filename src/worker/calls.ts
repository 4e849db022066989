/** What a handler can ask of its ctx and forget to wait for. */
export type CallKind = "enqueue" | "transaction" | "map";

interface Entry {
  readonly kind: CallKind;
  readonly call: Call<unknown>;
  /** Never rejects. */
  readonly over: Promise<void>;
  error?: unknown;
}

/**
 * What a handler has asked of its ctx. A call that it forgot to await still belongs to its execution: the execution
 * waits for those under way, and hears of those that failed before it ended and that nobody looked at.
 * So nothing is lost in silence, and nothing ends the process as an unhandled rejection.
 */
export class Calls {
  readonly #open = new Set<Entry>();
  readonly #failed = new Set<Entry>();

  /** Follows one call. unheard: it failed, and nobody looks at it. */
  follow<T>(kind: CallKind, work: Promise<T>, unheard: (error: unknown) => boolean): Promise<T> {
    const call = new Call<T>((resolve, reject) => void work.then(resolve, reject));
    const succeed = (): void => void this.#open.delete(entry);
    const fail = (error: unknown): void => {
      this.#open.delete(entry);
      this.#failed.add(Object.assign(entry, { error }));
      // As late as Node itself decides that nobody listens.
      setImmediate(() => {
        if (call.heard || unheard(error)) this.#failed.delete(entry);
      });
    };
    const entry: Entry = { kind, call, over: call.watch(succeed, fail) };
    this.#open.add(entry);
    return call;
  }

  /** Whether there is nothing to wait for and nothing to hear of. */
  get quiet(): boolean {
    return this.#open.size === 0 && this.#failed.size === 0;
  }

  /** Waits for the calls under way; throws what one of them failed with, or one before that nobody looked at. */
  async settled(kind?: CallKind): Promise<void> {
    const concerned = (entry: Entry): boolean => kind === undefined || entry.kind === kind;
    const open = (): Entry[] => [...this.#open].filter(concerned);
    const failed = [...this.#failed].filter((entry) => concerned(entry) && !entry.call.heard);
    for (let under = open(); under.length > 0; under = open()) {
      await Promise.all(under.map(({ over }) => over));
      failed.push(...under.filter((entry) => this.#failed.has(entry) && !entry.call.heard));
    }
    // Whoever asked hears of the first, and so of all: together they are one failure.
    for (const { call } of failed) call.heard = true;
    if (failed[0] !== undefined) throw failed[0].error;
  }
}

/** A promise that knows whether somebody looks at it: `await` asks a class of its own for its `then`. */
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

  /** Looks at it without being heard. */
  watch(succeed: () => void, fail: (reason: unknown) => void): Promise<void> {
    return super.then(succeed, fail);
  }
}
