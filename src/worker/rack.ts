import type { Clock } from "../core/ports.js";
import type { Line } from "../postgres/line.js";
import type { Meter } from "./metrics/meter.js";

interface RackOptions {
  readonly lines: readonly Line[];
  readonly clock: Clock;
  readonly meter: Meter;
}

/** The lines that are idle, and how long outcomes waited for one of them. */
export class Rack {
  readonly #o: RackOptions;
  readonly #idle: Line[];
  #wantedMs: number | null = null;

  constructor(options: RackOptions) {
    this.#o = options;
    this.#idle = [...options.lines];
  }

  get idle(): number {
    return this.#idle.length;
  }

  get full(): boolean {
    return this.#idle.length === this.#o.lines.length;
  }

  get use(): { readonly active: number; readonly idle: number } {
    const idle = this.#idle.length;
    return { active: this.#o.lines.length - idle, idle };
  }

  take(): Line | undefined {
    if (this.#wantedMs !== null) this.#o.meter.waited("claim", this.#o.clock.now() - this.#wantedMs);
    this.#wantedMs = null;
    return this.#idle.pop();
  }

  /** One that failed is taken last: it may be the only one that cannot connect. */
  put(line: Line, failed = false): void {
    if (failed) this.#idle.unshift(line);
    else this.#idle.push(line);
  }

  /** Whether outcomes wait, for which there may be no line. */
  wanted(some: boolean): void {
    if (!some) this.#wantedMs = null;
    else if (this.#idle.length === 0) this.#wantedMs ??= this.#o.clock.now();
  }
}
