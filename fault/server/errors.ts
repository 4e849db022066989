// How often the server refused somebody, and why, by its own log.
import { open, stat } from "node:fs/promises";

/** As log_line_prefix '%e %a|' begins them. What the faults' own administrator provokes does not count. */
const LINE = /^([0-9A-Z]{5}) (?!fault\|)[^|]*\|(?:ERROR|FATAL): /;
/** Begins a message of the log; its details follow as lines of the same kind, or as lines that begin with a tab. */
const MESSAGE = /^[0-9A-Z]{5} [^|]*\|(?:PANIC|FATAL|ERROR|WARNING|NOTICE|INFO|LOG|DEBUG\d?): /;
const DEADLOCK = "40P01";
const DEADLOCK_LINES_MAX = 20;
const DEADLOCKS_MAX = 20;
const LINE_BYTES_MAX = 1_000_000;

/** A comment in the statements of a fault that makes deadlocks: the server tells what everybody in a cycle was about. */
export const PROVOKED = "/* to provoke a deadlock */";

export interface Deadlocks {
  /** In whose cycle a statement of the fault was. */
  readonly provoked: number;
  /** All others, and the first few as the log tells them. */
  readonly others: number;
  readonly first: readonly string[];
}

export class ErrorCount {
  readonly #file: string;
  readonly #counts = new Map<string, number>();
  #read = 0;
  #rest = "";
  #reading: Promise<void> = Promise.resolve();
  /** The message of the deadlock that was told last. */
  #deadlock: string[] | undefined;
  #provoked = 0;
  #others = 0;
  readonly #first: string[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  async of(sqlstate: string): Promise<number> {
    await this.#readOn();
    return this.#counts.get(sqlstate) ?? 0;
  }

  async deadlocks(): Promise<Deadlocks> {
    await this.#readOn();
    // A message is written in one go, so it is here whole.
    this.#closeDeadlock();
    return { provoked: this.#provoked, others: this.#others, first: this.#first };
  }

  #readOn(): Promise<void> {
    this.#reading = this.#reading.then(() => this.#catchUp());
    return this.#reading;
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
      if (MESSAGE.test(line)) this.#closeDeadlock();
      if (code === DEADLOCK) this.#deadlock = [line];
      else if ((this.#deadlock?.length ?? DEADLOCK_LINES_MAX) < DEADLOCK_LINES_MAX) this.#deadlock!.push(line);
    }
  }

  #closeDeadlock(): void {
    const text = this.#deadlock?.join("\n");
    this.#deadlock = undefined;
    if (text === undefined) return;
    if (text.includes(PROVOKED)) this.#provoked++;
    else if (++this.#others <= DEADLOCKS_MAX) this.#first.push(text);
  }
}
