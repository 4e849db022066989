// A process of the load, and what it has told so far.
import { fork, type ChildProcess } from "node:child_process";
import type { News, Orders, ToProcess } from "./load/orders.js";

const STDERR_CHARS_MAX = 4_000;

export class Child {
  readonly name: string;
  readonly gone: Promise<void>;
  readonly #process: ChildProcess;
  #news: News = {};
  #stderr = "";
  readonly #hears = new Set<(news: News) => void>();

  constructor(program: string, orders: Orders, env: Readonly<Record<string, string>> = {}) {
    this.name = orders.name;
    this.#process = fork(program, {
      // PGAPPNAME: whoever looks at the server sees which connection is whose.
      env: {
        ...process.env,
        ...env,
        PGAPPNAME: orders.name,
        FAULT_ORDERS: JSON.stringify(orders),
      },
      // Not the loader of this process: these programs are JavaScript.
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#process.on("message", (news: News) => this.#hear(news));
    this.#process.stderr!.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-STDERR_CHARS_MAX);
    });
    this.gone = new Promise((resolve) => {
      this.#process.once("exit", () => resolve());
      this.#process.on("error", (e) => {
        this.#stderr += String(e);
        if (this.#process.pid === undefined) resolve();
      });
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  get alive(): boolean {
    const { pid, exitCode, signalCode } = this.#process;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  get news(): News {
    return this.#news;
  }

  /** How it ended and what it said last, for who did not expect it. */
  get lastWords(): string {
    const { exitCode, signalCode } = this.#process;
    return `${this.name} ended with ${exitCode ?? signalCode}: ${this.#stderr.trim().slice(-1_000)}`;
  }

  /** Hears what it tells from now on. */
  onNews(hear: (news: News) => void): () => void {
    this.#hears.add(hear);
    return () => void this.#hears.delete(hear);
  }

  /** Resolves with the next news that has this word, or with false when the process is gone. */
  async told(word: keyof News): Promise<boolean> {
    let hush = (): void => {};
    const heard = new Promise<true>((resolve) => {
      hush = this.onNews((news) => {
        if (news[word] !== undefined) resolve(true);
      });
    });
    try {
      return await Promise.race([heard, this.gone.then(() => false)]);
    } finally {
      hush();
    }
  }

  tell(message: ToProcess): void {
    // It may have died just now; whoever waits for its answer waits for its end too.
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  #hear(news: News): void {
    this.#news = { ...this.#news, ...news };
    for (const hear of this.#hears) hear(news);
  }
}
