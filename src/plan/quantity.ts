import { SluiceError } from "../core/error.js";
import { checkNumber, type Range } from "../core/number.js";
import { quote } from "../core/quote.js";

const NUMBER = String.raw`(\d{1,12}(?:\.\d{1,6})?)`;
const RATE = new RegExp(`^${NUMBER}(?:/(s|sec|min|h))?$`);
const DURATION = new RegExp(`^${NUMBER} ?(us|ms|s|min|h)$`);

const SECONDS = { s: 1, sec: 1, min: 60, h: 3600 } as const;
const MILLISECONDS = { us: 0.001, ms: 1, s: 1000, min: 60_000, h: 3_600_000 } as const;

const RATE_RANGE: Range = { min: 0.0001, max: 1_000_000 };
/** How long a task may take, in milliseconds. */
export const DURATION_RANGE: Range = { min: 0, max: 7 * 24 * 3_600_000 };

/** Tasks per second, from "200", "200/s", "12000/min" or "5/h". */
export function parseRate(option: string, text: string): number {
  const [, number, unit = "s"] = RATE.exec(text) ?? [];
  if (number === undefined)
    throw refusal(option, `a number of tasks, such as 200, 200/s or 12000/min`, text);
  return checkNumber(option, Number(number) / SECONDS[unit as keyof typeof SECONDS], RATE_RANGE);
}

/** Milliseconds, from "80ms", "1.5s", "2min" or "1h". The unit must be said: a guess would be off by a thousand. */
export function parseDuration(option: string, text: string): number {
  const [, number, unit = "ms"] = DURATION.exec(text) ?? [];
  if (number === undefined)
    throw refusal(option, "a duration with its unit, such as 80ms, 1.5s or 2min", text);
  const ms = Number(number) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
  return checkNumber(`${option} in ms`, ms, DURATION_RANGE);
}

function refusal(option: string, wanted: string, text: string): SluiceError {
  return new SluiceError("invalid_option", `${option} must be ${wanted}, not ${quote(text)}`, {
    details: { option },
  });
}
