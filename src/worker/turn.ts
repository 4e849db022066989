// A turn lasts several steps, so that slots freed by one step are used by the next.
const STEPS_PER_TURN = 8;

/** The stream with which a worker's next search begins: each stream gets its turn. */
export class Turn {
  readonly #streams: number;
  #steps = 0;
  #from = 1;

  constructor(streams: number) {
    this.#streams = streams;
  }

  next(): number {
    if (++this.#steps % STEPS_PER_TURN === 0) this.#from = 1 + Math.floor(Math.random() * this.#streams);
    return this.#from;
  }
}
