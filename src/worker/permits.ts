/**
 * Bounds the tasks in flight. A permit is taken before a task is claimed and returned once its outcome is recorded. The
 * statement that records the outcome may already claim the next task on that permit.
 */
export class Permits {
  readonly max: number;
  #inUse = 0;

  constructor(max: number) {
    this.max = max;
  }

  get free(): number {
    return this.max - this.#inUse;
  }

  get inUse(): number {
    return this.#inUse;
  }

  take(n: number): void {
    // guard: permit before claim -> test/worker/permits.test.ts: "there are never more tasks in flight than permits"
    if (n /* guard:permit */ > this.free /* end */) throw new Error(`${n} permits requested, ${this.free} free`);
    this.#inUse += n;
  }

  give(n: number): void {
    if (n > this.#inUse) throw new Error(`${n} permits given back, ${this.#inUse} in use`);
    this.#inUse -= n;
  }
}
