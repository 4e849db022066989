import { nowMs } from "../numbers.js";
import type { FromWorker, Report } from "./messages.js";

// Each message costs a system call or two, so not more often than the end needs to be known.
const TELL_INTERVAL_MS = 20;

/** Counts tasks in a worker process and tells the parent: now and then, and at once at the last. */
export class Counter {
  readonly #total: number;
  readonly #latenciesMs: number[] = [];
  #begun = 0;
  #ended = 0;
  #firstMs: number | null = null;
  #lengthsMs = 0;
  #told = 0;
  #cpu = process.cpuUsage();

  constructor(total: number) {
    this.#total = total;
    setInterval(() => this.#tellNews(), TELL_INTERVAL_MS);
  }

  /** From here on CPU time counts. */
  go(): void {
    this.#cpu = process.cpuUsage();
  }

  begin(): void {
    if (this.#begun++ === 0) this.#firstMs = nowMs();
    if (this.#begun === this.#total) this.#tell(null);
  }

  end(): void {
    if (++this.#ended === this.#total) this.#tell(nowMs());
  }

  /** How long a task really took; a timer is never exact. */
  took(ms: number): void {
    this.#lengthsMs += ms;
  }

  latency(ms: number): void {
    this.#latenciesMs.push(ms);
  }

  report(): Omit<Report, "claims" | "ledger"> {
    const { user, system } = process.cpuUsage(this.#cpu);
    return {
      rssBytes: process.memoryUsage.rss(),
      rssBytesMax: process.resourceUsage().maxRSS * 1024,
      cpuMs: (user + system) / 1_000,
      latenciesMs: this.#latenciesMs,
      lengthMs: this.#lengthsMs / Math.max(1, this.#ended),
    };
  }

  #tellNews(): void {
    if (this.#begun + this.#ended !== this.#told) this.#tell(nowMs());
  }

  #tell(lastMs: number | null): void {
    this.#told = this.#begun + this.#ended;
    const progress = { begun: this.#begun, ended: this.#ended, firstMs: this.#firstMs, lastMs };
    tellParent({ kind: "progress", progress });
  }
}

export function tellParent(message: FromWorker): void {
  process.send?.(message);
}
