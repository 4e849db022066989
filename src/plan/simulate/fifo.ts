const HOLE_MIN = 1024;

/** First in, first out, without moving all waiting items each time one leaves. */
export class Fifo<T> {
  #items: T[] = [];
  #first = 0;

  get size(): number {
    return this.#items.length - this.#first;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#first === this.#items.length) return undefined;
    const item = this.#items[this.#first++];
    if (this.#first >= HOLE_MIN && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}
