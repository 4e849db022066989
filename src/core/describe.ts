import { quote } from "./quote.js";
import { storable } from "./storable.js";
import { clip } from "./text.js";

/** A stored description of a thrown value: bounded text that PostgreSQL accepts. */
export interface ErrorDescription {
  name: string;
  message: string;
  code?: string;
  /** Only the stack frames; the name and the message are not repeated. */
  stack?: string;
  cause?: string;
}

const THROWN_BYTES_MAX = 1024;

/**
 * Describes any thrown value without throwing. The JSON of the description takes at most `bytesMax` bytes (at least
 * 512).
 */
export function describeError(e: unknown, bytesMax = 8192): ErrorDescription {
  const part = (text: string, sixteenths: number) => clip(text, Math.floor((bytesMax * sixteenths) / 16));
  const code = codeOf(e);
  const stack = framesOf(e);
  const cause = causeOf(e);
  return {
    name: part(nameOf(e), 1),
    message: part(messageOf(e), 6),
    ...(code === null ? {} : { code: part(code, 1) }),
    ...(stack === null ? {} : { stack: part(stack, 4) }),
    ...(cause === null ? {} : { cause: part(cause, 2) }),
  };
}

function nameOf(e: unknown): string {
  const name = read(e, "name");
  if (typeof name === "string" && name !== "" && isErrorLike(e)) return name;
  return isErrorLike(e) ? "Error" : "NonError";
}

function messageOf(e: unknown): string {
  if (typeof e === "string") return e;
  const message = read(e, "message");
  if (typeof message === "string") return message;
  if (typeof e === "object" && e !== null) return storable(e, THROWN_BYTES_MAX);
  return quote(e);
}

function codeOf(e: unknown): string | null {
  const code = read(e, "code");
  if (typeof code === "string" && code !== "") return code;
  return typeof code === "number" ? String(code) : null;
}

function framesOf(e: unknown): string | null {
  const stack = read(e, "stack");
  if (typeof stack !== "string") return null;
  // V8 repeats the message at the start of the stack, and it may be megabytes long.
  const message = read(e, "message");
  const repeated = typeof message === "string" ? stack.indexOf(message) : -1;
  const from = repeated === -1 ? 0 : repeated + String(message).length;
  const frames = stack.indexOf("\n    at ", from);
  return frames === -1 ? null : stack.slice(frames + 1);
}

function causeOf(e: unknown): string | null {
  const errors = read(e, "errors");
  const cause = read(e, "cause") ?? read(errors, "0");
  if (cause === undefined || cause === null) return null;
  return `${nameOf(cause)}: ${messageOf(cause).slice(0, THROWN_BYTES_MAX)}`;
}

function isErrorLike(e: unknown): boolean {
  return typeof e === "object" && typeof read(e, "message") === "string";
}

/** Reads a property of any value; undefined if a getter or proxy throws. */
function read(from: unknown, key: string): unknown {
  if (typeof from !== "object" || from === null) return undefined;
  try {
    return Reflect.get(from, key) as unknown;
  } catch {
    return undefined;
  }
}
