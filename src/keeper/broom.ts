import type { Clock } from "../core/ports.js";
import type { Line } from "../postgres/line.js";
import { vacuum, walkedRows, type Walked } from "../postgres/vacuum.js";

// A vacuum reads the whole index, so it must be worth it; one that would take seconds is left to autovacuum.
const DEAD_MIN = 10_000;
const DEAD_MAX = 1_000_000;
const LIVE_MAX = 2_000_000;
const DEAD_SHARE_MIN = 0.1;
// Nothing could be cleaned away: somebody holds an old snapshot.
const REST_MS = 60_000;

/**
 * Cleans away what claims leave behind. Autovacuum looks once a minute, and by then a busy queue has millions
 * of dead rows at the beginning of its indexes, over which every look walks.
 */
export class Broom {
  readonly #line: Line;
  readonly #clock: Clock;
  readonly #restUntilMs = new Map<Walked, number>();

  constructor(line: Line, clock: Clock) {
    this.#line = line;
    this.#clock = clock;
  }

  async sweep(): Promise<void> {
    for (const { name, live, dead } of await walkedRows(this.#line)) {
      if (dead < Math.max(DEAD_MIN, live * DEAD_SHARE_MIN)) continue;
      if (dead > DEAD_MAX || live > LIVE_MAX) continue;
      if (this.#clock.now() < (this.#restUntilMs.get(name) ?? 0)) continue;
      // Before it, so that one that fails is not tried again at once.
      this.#restUntilMs.set(name, this.#clock.now() + REST_MS);
      await vacuum(this.#line, name);
      const after = (await walkedRows(this.#line)).find((rows) => rows.name === name);
      if (after !== undefined && after.dead <= dead / 2) this.#restUntilMs.delete(name);
    }
  }
}
