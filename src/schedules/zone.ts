import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";

const DAY_MS = 24 * 3_600_000;
const NAME = /^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/;
// There are fewer than 600 names, but many spellings of them, so the cache needs a bound.
const KNOWN_MAX = 1_000;
const known = new Map<string, Zone>();

/**
 * A time zone, seen through its wall clock. Wall times are also in ms, as if the wall clock ran in UTC. When clocks are
 * set forward, some wall times are never shown; when clocks are set back, some are shown twice.
 */
export class Zone {
  readonly #format: Intl.DateTimeFormat;

  private constructor(name: string) {
    const two = "2-digit";
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      year: "numeric",
      month: two,
      day: two,
      hour: two,
      minute: two,
      second: two,
    });
  }

  /** Returns the zone of this name, or throws `invalid_time_zone`. */
  static of(name: unknown): Zone {
    const found = known.get(name as string);
    if (found !== undefined) return found;
    if (known.size >= KNOWN_MAX) known.clear();
    try {
      if (typeof name !== "string" || !NAME.test(name)) throw new RangeError("not a name");
      const zone = new Zone(name);
      known.set(name, zone);
      return zone;
    } catch (cause) {
      throw new SluiceError(
        "invalid_time_zone",
        `timeZone ${quote(name)} is not known: use a name like "Europe/Berlin" or "UTC"`,
        { cause, details: { option: "timeZone" } },
      );
    }
  }

  /**
   * Returns the latest time that the clock has shown up to this instant: after a step back, that differs from the time
   * it shows now.
   */
  shownUntil(ms: number): number {
    const now = this.#offset(ms);
    const before = this.#offset(ms - DAY_MS);
    if (before <= now) return ms + now;
    return Math.max(ms + now, this.#change(ms - DAY_MS, ms) + before - 1);
  }

  /**
   * Returns the instant at which the clock first shows this time; for a time it never shows, the instant of the step
   * that skips it.
   */
  firstShown(wall: number): number {
    const before = this.#offset(wall - DAY_MS);
    const after = this.#offset(wall + DAY_MS);
    const early = wall - Math.max(before, after);
    const late = wall - Math.min(before, after);
    if (this.#shows(early, wall)) return early;
    return this.#shows(late, wall) ? late : this.#change(early, late);
  }

  #shows(ms: number, wall: number): boolean {
    return ms + this.#offset(ms) === wall;
  }

  /** Returns the instant of the one change of offset between these two. */
  #change(fromMs: number, toMs: number): number {
    const after = this.#offset(toMs);
    let [low, high] = [Math.floor(fromMs / 1000), Math.floor(toMs / 1000)];
    while (low + 1 < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offset(middle * 1000) === after) high = middle;
      else low = middle;
    }
    return high * 1000;
  }

  #offset(ms: number): number {
    const second = Math.floor(ms / 1000) * 1000;
    const part: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(second)) part[type] = Number(value);
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second: s = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute, s) - second;
  }
}
