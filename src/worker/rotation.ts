// The first stream stays the same for several steps, so that slots freed by one step are used by the next.
const STEPS_PER_STREAM = 8;

/** Rotates the stream with which a worker's next search begins, so that each stream comes first from time to time. */
export class StreamRotation {
  readonly #streams: number;
  #steps = 0;
  #from = 1;

  constructor(streams: number) {
    this.#streams = streams;
  }

  next(): number {
    if (++this.#steps % STEPS_PER_STREAM === 0) this.#from = 1 + Math.floor(Math.random() * this.#streams);
    return this.#from;
  }
}
