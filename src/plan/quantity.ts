import { SluiceError } from "../core/error.js";
import { checkNumber, type Range } from "../core/number.js";
import { quote } from "../core/quote.js";

const NUMBER = String.raw`(\d{1,12}(?:\.\d{1,6})?|\.\d{1,6})`;
const SECONDS = { s: 1, sec: 1, second: 1, m: 60, min: 60, minute: 60, h: 3600, hour: 3600 };
const MILLISECONDS = { us: 0.001, ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000 };

const RATE = new RegExp(`^${NUMBER}(?:/(${Object.keys(SECONDS).join("|")}))?$`);
const DURATION = new RegExp(`^${NUMBER} ?(${Object.keys(MILLISECONDS).join("|")})$`);

const RATE_RANGE: Range = { min: 0.0001, max: 1_000_000 };
/** How long a task may take, in milliseconds. */
const DURATION_RANGE: Range = { min: 0, max: 7 * 24 * 3_600_000 };
const SAMPLES_MAX = 1_000_000;

/** Tasks per second, from "200", "200/s", "12000/min" or "5000/hour". */
export function parseRate(option: string, text: string): number {
  const [, number, unit = "s"] = RATE.exec(text) ?? [];
  if (number === undefined)
    throw refusal(option, "a number of tasks per second, minute or hour, such as 200, 12000/min or 5000/h", text);
  return checkNumber(option, Number(number) / SECONDS[unit as keyof typeof SECONDS], RATE_RANGE);
}

/**
 * Milliseconds, from "80ms", "1.5s", "12m" (minutes) or "1h". The unit is required: a guess would be off by a thousand.
 */
export function parseDuration(option: string, text: string): number {
  const [, number, unit = "ms"] = DURATION.exec(text) ?? [];
  if (number === undefined)
    throw refusal(option, "a duration with a unit (us, ms, s, min or m, h), such as 80ms, 1.5s or 12min", text);
  const ms = Number(number) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
  return checkNumber(`${option} in ms`, ms, DURATION_RANGE);
}

function refusal(option: string, wanted: string, text: string): SluiceError {
  return new SluiceError("invalid_option", `${option} must be ${wanted}, not ${quote(text)}`, {
    details: { option },
  });
}

/** Durations in milliseconds from a file's text: a number per line, or JSON per line with `durationMs`. */
export function parseSamples(file: string, text: string): number[] {
  const samples: number[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    if (samples.length === SAMPLES_MAX) throw sampleRefusal(file, at + 1, `has more than ${SAMPLES_MAX} durations`);
    samples.push(durationIn(line.trim(), file, at + 1));
  }
  if (samples.length === 0) throw sampleRefusal(file, null, "has no durations");
  return samples;
}

function durationIn(line: string, file: string, number: number): number {
  const value = line.startsWith("{") ? fieldOf(line) : numberOf(line);
  const { min, max } = DURATION_RANGE;
  if (typeof value === "number" && value >= min && value <= max) return value;
  const wanted = `a duration in ms from ${min} to ${max}, or JSON with such a durationMs`;
  throw sampleRefusal(file, number, `must be ${wanted}, not ${quote(line)}`);
}

/** `Number` would also accept "", "0x10" and "Infinity". */
function numberOf(line: string): number | undefined {
  return /^\d+(\.\d+)?(e[+-]?\d+)?$/i.test(line) ? Number(line) : undefined;
}

function fieldOf(line: string): unknown {
  try {
    return (JSON.parse(line) as { durationMs?: unknown }).durationMs;
  } catch {
    return undefined;
  }
}

function sampleRefusal(file: string, line: number | null, what: string): SluiceError {
  const place = line === null ? file : `${file}, line ${line},`;
  return new SluiceError("invalid_option", `${place} ${what}`, { details: { file, line } });
}
