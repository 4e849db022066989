import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";
import { DURATION_RANGE } from "./quantity.js";

const SAMPLES_MAX = 1_000_000;

/** Durations in milliseconds from a file's text: a number per line, or JSON per line with `durationMs`. */
export function parseSamples(file: string, text: string): number[] {
  const samples: number[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    if (samples.length === SAMPLES_MAX) throw refusal(file, at + 1, `has more than ${SAMPLES_MAX} durations`);
    samples.push(durationIn(line.trim(), file, at + 1));
  }
  if (samples.length === 0) throw refusal(file, null, "has no durations");
  return samples;
}

function durationIn(line: string, file: string, number: number): number {
  const value = line.startsWith("{") ? fieldOf(line) : numberOf(line);
  const { min, max } = DURATION_RANGE;
  if (typeof value === "number" && value >= min && value <= max) return value;
  const wanted = `a duration in ms from ${min} to ${max}, or JSON with such a durationMs`;
  throw refusal(file, number, `must be ${wanted}, not ${quote(line)}`);
}

/** `Number` would take "", "0x10" and "Infinity" as well. */
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

function refusal(file: string, line: number | null, what: string): SluiceError {
  const place = line === null ? file : `${file}, line ${line},`;
  return new SluiceError("invalid_option", `${place} ${what}`, { details: { file, line } });
}
