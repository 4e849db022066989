import { SluiceError } from "./error.js";
import { quote } from "./quote.js";

/**
 * What to hide in inputs that operators see. A path names keys from the top, separated by dots: `user.card`. A `*`
 * stands for any one key or index, and at the start, `*.card`, for any depth. A function returns true for a value to
 * hide.
 */
export type Redaction = string | ((path: readonly string[], value: unknown) => boolean);

/** Replaces a hidden value. */
export const REDACTED = "[redacted]";

/** Names of keys that are always hidden, at any depth, however they are written: apiKey, api_key, API-KEY. */
const SECRET_NAMES = new Set(
  [
    ["password", "passwd", "passphrase", "pwd", "secret", "clientsecret", "privatekey", "credentials"],
    ["token", "accesstoken", "refreshtoken", "idtoken", "apikey", "apitoken", "authorization", "cookie", "setcookie"],
    ["creditcard", "cardnumber", "cvv", "cvc", "iban", "ssn"],
  ].flat(),
);

const PATHS_MAX = 100;
const DEPTH_MAX = 100;

export type Redact = (input: unknown) => unknown;

/** Checks the option `redact`, and returns the function that hides. false: nothing is hidden. */
export function redactOf(option: readonly Redaction[] | false | undefined): Redact {
  if (option === false) return (input) => input;
  const rules = (option ?? []) as readonly unknown[];
  if (!Array.isArray(rules) || rules.length > PATHS_MAX || !rules.every(isRule)) {
    throw new SluiceError(
      "invalid_option",
      `redact must be false or a list of at most ${PATHS_MAX} paths like "*.password" and functions, not ${quote(option)}`,
      { details: { option: "redact" } },
    );
  }
  const hides = [isSecret, ...rules.map(ruleOf)];
  return (input) => hidden(input, [], hides);
}

type Hides = (path: readonly string[], value: unknown) => boolean;

function isRule(rule: unknown): rule is Redaction {
  return typeof rule === "function" || (typeof rule === "string" && /^[^.]+(\.[^.]+)*$/.test(rule));
}

const isSecret: Hides = (path) => SECRET_NAMES.has((path.at(-1) ?? "").toLowerCase().replaceAll(/[^a-z0-9]/g, ""));

function ruleOf(rule: Redaction): Hides {
  if (typeof rule === "function") return rule;
  const keys = rule.split(".");
  const anywhere = keys.length > 1 && keys[0] === "*";
  const wanted = anywhere ? keys.slice(1) : keys;
  return (path) => {
    if (anywhere ? path.length < wanted.length : path.length !== wanted.length) return false;
    const from = path.length - wanted.length;
    return wanted.every((key, i) => key === "*" || key === path[from + i]);
  };
}

/** A rule that throws hides the value: an operator sees too little rather than too much. */
function isHidden(path: readonly string[], value: unknown, hides: readonly Hides[]): boolean {
  try {
    return hides.some((hide) => hide(path, value));
  } catch {
    return true;
  }
}

function hidden(value: unknown, path: readonly string[], hides: readonly Hides[]): unknown {
  if (path.length > 0 && isHidden(path, value, hides)) return REDACTED;
  if (typeof value !== "object" || value === null) return value;
  if (path.length >= DEPTH_MAX) return REDACTED;
  if (Array.isArray(value)) return value.map((one, i) => hidden(one, [...path, String(i)], hides));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, hidden(one, [...path, key], hides)]));
}
