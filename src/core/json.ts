import { SluiceError } from "./error.js";
import { tooDeep, unstorableAt, NESTING_MAX } from "./jsontext.js";
import { lossIn } from "./faithful.js";
import { pathOfTrouble, type JsonTrouble } from "./jsonpath.js";

export { describeError, type ErrorDescription } from "./describe.js";
export { noteOf, storable } from "./storable.js";

/** Returns the JSON text of an input, checked for everything that PostgreSQL could refuse later. */
export function encodeInput(value: unknown, bytesMax: number): string {
  const text = stringify(value, bytesMax);
  checkBytes(text, bytesMax);
  const at = unstorableAt(text);
  if (at !== -1) {
    throw new SluiceError(
      "input_not_storable",
      `the input contains ${text.startsWith("\\u0000", at) ? "a NUL character" : "a lone surrogate"}, ` +
        "which PostgreSQL cannot store",
    );
  }
  if (tooDeep(text)) {
    throw new SluiceError("input_not_storable", `the input is nested more than ${NESTING_MAX} levels deep`);
  }
  checkFaithful(value);
  return text;
}

function stringify(value: unknown, bytesMax: number): string {
  let text: string | undefined;
  try {
    text = value === undefined ? "null" : JSON.stringify(value);
  } catch (cause) {
    throw refusal(value, bytesMax, cause);
  }
  if (text !== undefined) return text;
  throw new SluiceError(
    "input_not_serialisable",
    "the input is not JSON: it is " +
      (typeof value === "object" ? "an object whose toJSON returns undefined" : `a ${typeof value}`),
  );
}

/** Runs last, when the value is known to be bounded: the stored value must equal the given one. */
function checkFaithful(value: unknown): void {
  let loss: JsonTrouble | null;
  try {
    loss = lossIn(value);
  } catch (cause) {
    throw refusal(value, 0, cause);
  }
  if (loss !== null) throw notJson(loss);
}

function notJson({ what, path }: JsonTrouble, cause?: unknown): SluiceError {
  return new SluiceError("input_not_serialisable", `the input is not JSON: ${what} at ${path}`, {
    details: { path },
    ...(cause === undefined ? {} : { cause }),
  });
}

function checkBytes(text: string, bytesMax: number): void {
  // A UTF-16 unit takes at most 3 bytes in UTF-8, so small inputs need no counting.
  if (text.length * 3 <= bytesMax) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) throw tooLarge(bytesMax, bytes);
}

function tooLarge(bytesMax: number, bytes?: number): SluiceError {
  return new SluiceError(
    "input_too_large",
    `the input has ${bytes === undefined ? "far more bytes" : `${bytes} bytes, more`} than the ${bytesMax} allowed`,
    { details: { bytesMax, ...(bytes === undefined ? {} : { bytes }) } },
  );
}

function refusal(value: unknown, bytesMax: number, cause: unknown): SluiceError {
  if (isRangeError(cause, /string length/i)) return tooLarge(bytesMax);
  if (isRangeError(cause, /call stack/i)) {
    return new SluiceError("input_not_serialisable", "the input is nested too deeply for JSON", {
      cause,
    });
  }
  const found = pathOfTrouble(value);
  if (found !== null) return notJson(found, cause);
  return new SluiceError("input_not_serialisable", "the input is not JSON: a toJSON or a getter in it threw", {
    cause,
  });
}

function isRangeError(e: unknown, message: RegExp): boolean {
  try {
    return e instanceof RangeError && message.test(e.message);
  } catch {
    return false;
  }
}
