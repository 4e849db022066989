export interface Message {
  readonly type: number;
  readonly body: Buffer;
  /** Type, length and body, as they came. */
  readonly raw: Buffer;
}

/** Cuts a stream of bytes into messages: a type, a length that counts itself, a body. */
export class Frames {
  #rest: Buffer = Buffer.alloc(0);

  *add(chunk: Buffer): Generator<Message> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 5) {
      const length = 1 + this.#rest.readUInt32BE(1);
      if (this.#rest.length < length) return;
      const raw = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      yield { type: raw[0]!, body: raw.subarray(5), raw };
    }
  }
}
