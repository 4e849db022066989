import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";

const DAY_MS = 24 * 3_600_000;
const NAME = /^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/;
// There are fewer than 600 names; their spellings are what must be bounded.
const KNOWN_MAX = 1_000;
const known = new Map<string, Zone>();

/**
 * A time zone as a clock on its wall shows it. Wall times are ms too, as if the wall were in UTC. When
 * clocks are set forward some wall times are never shown; when they are set back some are shown twice.
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

  /** The zone of this name, or `invalid_time_zone`. */
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
        `timeZone ${quote(name)} is not known here: it must be a name like "Europe/Berlin" or "UTC"`,
        { cause, details: { option: "timeZone" } },
      );
    }
  }

  /** The latest time that the clock has shown up to this instant: after a step back that is not what it shows now. */
  shownUntil(ms: number): number {
    const now = this.#offset(ms);
    const before = this.#offset(ms - DAY_MS);
    if (before <= now) return ms + now;
    return Math.max(ms + now, this.#change(ms - DAY_MS, ms) + before - 1);
  }

  /** The instant at which the clock first shows this time, or for a time it never shows the step that leaves it out. */
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

  /** The instant of the one change of offset between these two. */
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
