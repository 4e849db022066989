import { SluiceError } from "./error.js";
import { didYouMean } from "./near.js";
import { quote } from "./quote.js";
import { clip } from "./text.js";

const STRAY_BYTES_MAX = 512;

/** Refuses anything but an object with known keys: a misspelled option must not be silently ignored. */
export function checkOptions(what: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw refusal(what, `${what} options must be an object, not ${quote(options)}`);
  const stray = Object.keys(options).find((key) => !known.includes(key));
  if (stray === undefined) return;
  const all = `; the known options are ${known.join(", ")}${didYouMean(stray, known)}`;
  throw refusal(clip(stray, STRAY_BYTES_MAX), `${what} has no option ${quote(stray)}${all}`);
}

/** Returns one of the listed words, or throws `invalid_option`. */
export function checkOneOf<const T extends string>(option: string, value: unknown, words: readonly T[]): T {
  const found = words.find((word) => word === value);
  if (found !== undefined) return found;
  throw refusal(option, `${option} must be ${words.map(quote).join(" or ")}, not ${quote(value)}`);
}

/** Returns a function, or throws `invalid_option`. */
export function checkFunction<T>(option: string, value: T): T {
  if (typeof value === "function") return value;
  throw refusal(option, `${option} must be a function, not ${quote(value)}`);
}

function refusal(option: string, message: string): SluiceError {
  return new SluiceError("invalid_option", message, { details: { option } });
}
