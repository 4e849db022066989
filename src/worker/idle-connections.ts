import type { Clock } from "../core/ports.js";
import type { Connection } from "../postgres/connection.js";
import type { Meter } from "./metrics/meter.js";

interface IdleConnectionsOptions {
  readonly connections: readonly Connection[];
  readonly clock: Clock;
  readonly meter: Meter;
}

/** The idle connections, and how long outcomes waited for one of them. */
export class IdleConnections {
  readonly #o: IdleConnectionsOptions;
  readonly #idle: Connection[];
  #wantedMs: number | null = null;

  constructor(options: IdleConnectionsOptions) {
    this.#o = options;
    this.#idle = [...options.connections];
  }

  get count(): number {
    return this.#idle.length;
  }

  get allIdle(): boolean {
    return this.#idle.length === this.#o.connections.length;
  }

  get use(): { readonly active: number; readonly idle: number } {
    const idle = this.#idle.length;
    return { active: this.#o.connections.length - idle, idle };
  }

  take(): Connection | undefined {
    if (this.#wantedMs !== null) this.#o.meter.waited("claim", this.#o.clock.now() - this.#wantedMs);
    this.#wantedMs = null;
    return this.#idle.pop();
  }

  /** A failed connection is taken last: it may be the only one that cannot connect. */
  put(connection: Connection, failed = false): void {
    if (failed) this.#idle.unshift(connection);
    else this.#idle.push(connection);
  }

  /** Records whether outcomes wait while there may be no idle connection. */
  wanted(some: boolean): void {
    if (!some) this.#wantedMs = null;
    else if (this.#idle.length === 0) this.#wantedMs ??= this.#o.clock.now();
  }
}
