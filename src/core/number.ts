import { SluiceError } from "./error.js";
import { quote } from "./quote.js";

/** An inclusive range. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** Returns an integer within the range, or throws `invalid_option` naming the option. */
export function checkInteger(option: string, value: unknown, range: Range): number {
  if (Number.isInteger(value) && within(value as number, range)) return positiveZero(value as number);
  throw refusal(option, value, "an integer", range);
}

/** Returns a finite number within the range, or throws `invalid_option` naming the option. */
export function checkNumber(option: string, value: unknown, range: Range): number {
  if (typeof value === "number" && within(value, range)) return positiveZero(value);
  throw refusal(option, value, "a number", range);
}

/** Returns a duration in whole ms, rounded; throws `invalid_option` if it is not a number within the range. */
export function checkMs(option: string, value: unknown, range: Range): number {
  return Math.round(checkNumber(option, value, range));
}

function within(value: number, { min, max }: Range): boolean {
  return value >= min && value <= max;
}

function positiveZero(value: number): number {
  return value === 0 ? 0 : value;
}

function refusal(option: string, value: unknown, what: string, { min, max }: Range): SluiceError {
  return new SluiceError("invalid_option", `${option} must be ${what} from ${min} to ${max}, not ${quote(value)}`, {
    details: { option, min, max },
  });
}
