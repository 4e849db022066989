import { describeError } from "./describe.js";
import { SluiceError, isSluiceError } from "./error.js";
import { checkReturnedKey, toUse, type Limit, type LimitUse } from "./limit.js";
import { checkKey } from "./name.js";
import { quote } from "./quote.js";

/** One limit that a task has to pass, with its resolved key; null if the limit has no keys. */
export interface PlacedLimit {
  readonly limit: Limit;
  readonly key: string | null;
}

/** A task's order key and limits, which determine its place in line. */
export interface Placement {
  readonly order: string | null;
  readonly limits: readonly PlacedLimit[];
}

/** How to find a task's order key, and what a final failure does to the tasks behind it. */
export interface OrderRule {
  readonly keyOf: (input: never) => unknown;
  readonly scope: string | null;
  readonly blocks: boolean;
}

/** How to find a task's limits: a fixed list, or a function of the input. */
export interface LimitRule {
  /** The type of the task, for messages. */
  readonly task: string;
  readonly uses: readonly LimitUse[] | ((input: never) => unknown);
  /** The limit that the task has through `concurrency`. The task must not use it a second time. */
  readonly ownName: string | null;
}

const LIMITS_MAX = 8;
// A control character, which neither a scope nor a key can contain.
const SCOPE_END = "\u001f";

/** Returns the order key of an input, with its scope, or null if the rule returns none. */
export function placeOrder(rule: OrderRule, input: unknown): string | null {
  const key = ask("order", rule.keyOf, input);
  if (key === undefined || key === null) return null;
  const text = checkKey("order", key);
  return rule.scope === null ? text : rule.scope + SCOPE_END + text;
}

/** Returns the limits of an input, each with its key. */
export function placeLimits(rule: LimitRule, input: unknown): readonly PlacedLimit[] {
  const { task, uses, ownName } = rule;
  const list = typeof uses === "function" ? usesOf(ask("limits", uses, input), task) : uses;
  const placed: PlacedLimit[] = [];
  for (const use of list) {
    const next = { limit: use.limit, key: keyOf(use, task, input) };
    if (use.limit.name === ownName) throw ownLimitTwice(next);
    refuseTwice(placed, next);
    placed.push(next);
  }
  return placed;
}

/** Normalizes a list of limits. */
export function usesOf(list: unknown, task: string): readonly LimitUse[] {
  if (!Array.isArray(list)) throw refusal("limits must be a list of limits");
  if (list.length > LIMITS_MAX) throw refusal(`a task can have at most ${LIMITS_MAX} limits`);
  // Array.from, because map would skip a hole in the list.
  return Array.from(list, (entry) => toUse(entry, task));
}

function keyOf(use: LimitUse, task: string, input: unknown): string | null {
  if (typeof use.key !== "function") return use.key;
  return checkReturnedKey(use, task, ask(`limit ${use.limit.name}`, use.key, input));
}

function refuseTwice(placed: readonly PlacedLimit[], next: PlacedLimit): void {
  const same = placed.find(({ limit }) => limit.name === next.limit.name);
  if (same === undefined) return;
  const { name } = next.limit;
  if (!sameShape(same.limit, next.limit)) {
    throw new SluiceError("limit_shape", `limit ${name} is declared twice with different parts (total, perKey)`, {
      details: { limit: name },
    });
  }
  // Two keys of one limit are two lanes, but the task would pass their common total twice.
  if (next.limit.total === undefined && !placed.some((p) => isSame(p, next))) return;
  throw usedTwice(next);
}

function usedTwice({ limit: { name }, key }: PlacedLimit): SluiceError {
  return new SluiceError("duplicate_limit", `limit ${name} is used twice by one task`, {
    details: { limit: name, key },
  });
}

/** A detailed message, because code that sets `concurrency` never names a limit. */
function ownLimitTwice({ limit: { name }, key }: PlacedLimit): SluiceError {
  return new SluiceError(
    "duplicate_limit",
    `task ${quote(name)} has a concurrency, which is a limit named ${quote(name)}, and its limits contain another ` +
      "limit of that name: rename that limit, or remove one of the two",
    { details: { limit: name, key } },
  );
}

function isSame(a: PlacedLimit, b: PlacedLimit): boolean {
  return a.limit.name === b.limit.name && a.key === b.key;
}

function sameShape(a: Limit, b: Limit): boolean {
  return (a.total === undefined) === (b.total === undefined) && (a.perKey === undefined) === (b.perKey === undefined);
}

const REASON_BYTES_MAX = 2_048;

/** Calls a user's function. Any error that it throws is blamed on the input, unless it is a SluiceError. */
export function ask(what: string, fn: (input: never) => unknown, input: unknown): unknown {
  try {
    return fn(input as never);
  } catch (cause) {
    if (isSluiceError(cause)) throw cause;
    const { message } = describeError(cause, REASON_BYTES_MAX);
    throw new SluiceError("input_invalid", `${what} could not be computed for this input: ${message}`, { cause });
  }
}

function refusal(message: string): SluiceError {
  return new SluiceError("invalid_option", message, { details: { option: "limits" } });
}
