import { SluiceError, type ErrorCode } from "./error.js";
import { quote } from "./quote.js";

/** The kind of thing that a name identifies. */
type NameKind =
  "task" | "queue" | "limit" | "scope" | "worker" | "schema" | "schedule" | "workflow" | "node" | "event" | "map";
/** The kind of thing that a key identifies. */
type KeyKind = "order" | "limit" | "idempotency";
/** The types that callers may pass as a key. */
export type Key = string | number | bigint;

// Lengths are counted in UTF-16 units, at most 3 bytes each in UTF-8: a scope and a key together stay below the 2,704
// bytes that a btree entry may have.
const NAME_LENGTH_MAX = 128;
const KEY_LENGTH_MAX = 512;

// Cc are the control characters; with the u flag Cs matches only lone surrogates.
const FORBIDDEN = /[\p{Cc}\p{Cs}]/u;
const SCHEMA_NAME = /^(?!pg_)[a-z_][a-z0-9_]{0,47}$/;

/** Returns a valid name unchanged, or throws `invalid_name`. Any word is allowed, including "__proto__". */
export function checkName(kind: NameKind, value: unknown): string {
  if (typeof value === "string" && fits(value, NAME_LENGTH_MAX)) return value;
  throw refusal("invalid_name", `${kind} name`, value, NAME_LENGTH_MAX);
}

/** Returns a key as text, or throws `invalid_key`. Safe integers and bigints are also keys. */
export function checkKey(kind: KeyKind, value: unknown): string {
  const text = keyText(value);
  if (text !== null && fits(text, KEY_LENGTH_MAX)) return text;
  throw refusal("invalid_key", `${kind} key`, value, KEY_LENGTH_MAX);
}

/** Returns a PostgreSQL schema name that needs no quoting, or throws `invalid_option`. */
export function checkSchemaName(value: unknown): string {
  if (typeof value === "string" && SCHEMA_NAME.test(value)) return value;
  throw new SluiceError(
    "invalid_option",
    `schema name ${quote(value)} is not allowed: use 1 to 48 of a-z, 0-9 and _, not starting with a digit or pg_`,
    { details: { option: "schema" } },
  );
}

function keyText(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return String(value);
  return null;
}

function fits(text: string, lengthMax: number): boolean {
  return text.length > 0 && text.length <= lengthMax && !FORBIDDEN.test(text);
}

function refusal(code: ErrorCode, what: string, value: unknown, lengthMax: number): SluiceError {
  return new SluiceError(
    code,
    `${what} ${quote(value)} is not allowed: use 1 to ${lengthMax} characters, ` +
      "no control characters, no lone surrogates",
  );
}
