import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 24 * 3_600_000, w: 7 * 24 * 3_600_000 };
const AGO = /^(\d{1,9}(?:\.\d{1,9})?)([smhdw])$/;

const ISO = /^\d{4}-\d\d/;

/** The help text of options that take a time. */
export const TIME_HELP = "a time (ISO 8601), or how long ago: 30m, 1h, 2d";

/** A time as typed: ISO 8601, or how long ago, such as 90s, 30m, 1h, 2d or 1w. */
export function timeOf(option: string, text: string, nowMs = Date.now()): Date {
  const [, count, unit] = AGO.exec(text) ?? [];
  const agoMs = unit === undefined ? null : Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS];
  // Without a check of its form, Date would read "5" as May 2001.
  const time = new Date(agoMs === null ? (ISO.test(text) ? text : Number.NaN) : nowMs - agoMs);
  if (!Number.isNaN(time.getTime())) return time;
  throw new SluiceError("invalid_option", `${option} must be ${TIME_HELP}, not ${quote(text)}`, {
    details: { option: option.replace(/^--/, "") },
  });
}
