// How often the server refused somebody, and why, by its own log.
import { open, stat } from "node:fs/promises";

/** As log_line_prefix '%e %a|' begins them. What the faults' own administrator provokes does not count. */
const LINE = /^([0-9A-Z]{5}) (?!fault\|)[^|]*\|(?:ERROR|FATAL): /;
const LINE_BYTES_MAX = 1_000_000;

export class ErrorCount {
  readonly #file: string;
  readonly #counts = new Map<string, number>();
  #read = 0;
  #rest = "";
  #reading: Promise<void> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
  }

  async of(sqlstate: string): Promise<number> {
    this.#reading = this.#reading.then(() => this.#catchUp());
    await this.#reading;
    return this.#counts.get(sqlstate) ?? 0;
  }

  async #catchUp(): Promise<void> {
    const { size } = await stat(this.#file);
    // A server that starts begins a log anew that has become too long.
    if (size < this.#read) this.#read = 0;
    const file = await open(this.#file, "r");
    try {
      while (this.#read < size) {
        const chunk = Buffer.alloc(Math.min(LINE_BYTES_MAX, size - this.#read));
        const { bytesRead } = await file.read(chunk, 0, chunk.length, this.#read);
        if (bytesRead === 0) return;
        this.#read += bytesRead;
        this.#count(chunk.toString("latin1", 0, bytesRead));
      }
    } finally {
      await file.close();
    }
  }

  #count(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const code = LINE.exec(line)?.[1];
      if (code !== undefined) this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1);
    }
  }
}
