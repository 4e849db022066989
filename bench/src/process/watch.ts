import type { Input } from "../adapter.js";
import type { Ledger } from "../audit.js";

// Tasks that run twice must be seen as well, but a worker that goes mad must not take all memory.
const SPARE = 1_000;

/** Notes when each task began and ended, in arrays that are there before the first one. */
export class Watch {
  readonly #keys = new Map<string, number>();
  readonly #key: Int32Array;
  readonly #n: Int32Array;
  readonly #beganMs: Float64Array;
  readonly #endedMs: Float64Array;
  #seen = 0;

  constructor(total: number) {
    const length = total + SPARE;
    this.#key = new Int32Array(length);
    this.#n = new Int32Array(length);
    this.#beganMs = new Float64Array(length);
    this.#endedMs = new Float64Array(length).fill(Number.NaN);
  }

  /** Returns what end() wants. */
  begin({ n, key }: Input, atMs: number): number {
    const at = this.#seen++;
    this.#key[at] = key === undefined ? -1 : this.#indexOf(key);
    this.#n[at] = n;
    this.#beganMs[at] = atMs;
    return at;
  }

  end(at: number, atMs: number): void {
    this.#endedMs[at] = atMs;
  }

  ledger(): Ledger {
    const seen = Math.min(this.#seen, this.#n.length);
    return {
      keys: [...this.#keys.keys()],
      key: this.#key.slice(0, seen),
      n: this.#n.slice(0, seen),
      beganMs: this.#beganMs.slice(0, seen),
      endedMs: this.#endedMs.slice(0, seen),
    };
  }

  #indexOf(key: string): number {
    let index = this.#keys.get(key);
    if (index === undefined) this.#keys.set(key, (index = this.#keys.size));
    return index;
  }
}
