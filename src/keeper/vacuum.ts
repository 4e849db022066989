import type { Clock } from "../core/ports.js";
import type { Connection } from "../postgres/connection.js";
import { vacuum, walkedRows, type Walked } from "../postgres/vacuum.js";

// A vacuum reads the whole index, so it must be worthwhile. A vacuum that would take seconds is left to autovacuum.
const DEAD_MIN = 10_000;
const DEAD_MAX = 1_000_000;
const LIVE_MAX = 2_000_000;
const DEAD_SHARE_MIN = 0.1;
// Wait after a vacuum that left most rows dead, doubled each time: an old snapshot may be held for hours. A busy
// queue kills as many rows again during a vacuum, which looks the same, so the first wait is short.
const REST_MS_MIN = 1_000;
const REST_MS_MAX = 60_000;

/**
 * Vacuums the dead rows that claims leave behind. Autovacuum checks once a minute, and by then a busy queue has
 * millions of dead rows at the beginning of its indexes, which every search walks over.
 */
export class Vacuum {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #rests = new Map<Walked, { untilMs: number; nextMs: number }>();

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  async run(): Promise<void> {
    for (const { name, live, dead } of await walkedRows(this.#connection)) {
      if (dead < Math.max(DEAD_MIN, live * DEAD_SHARE_MIN)) continue;
      if (dead > DEAD_MAX || live > LIVE_MAX) continue;
      const rest = this.#rests.get(name) ?? { untilMs: 0, nextMs: REST_MS_MIN };
      if (this.#clock.now() < rest.untilMs) continue;
      // Set beforehand, so that a failed vacuum is not repeated immediately.
      this.#rests.set(name, {
        untilMs: this.#clock.now() + rest.nextMs,
        nextMs: Math.min(2 * rest.nextMs, REST_MS_MAX),
      });
      await vacuum(this.#connection, name);
      const after = (await walkedRows(this.#connection)).find((rows) => rows.name === name);
      if (after !== undefined && after.dead <= dead / 2) this.#rests.delete(name);
    }
  }
}
