import type { JsonTrouble } from "./jsonpath.js";
import { pathStep } from "./jsonpath.js";

interface Loss {
  readonly what: string;
  /** The path from the value up to the root; filled in only once a loss is found. */
  readonly steps: string[];
}

// Their contents are not stored in properties, so JSON turns them into an empty or unexpected object.
const CLOSED = [Map, Set, WeakMap, WeakSet, Promise, RegExp, Error, ArrayBuffer, SharedArrayBuffer] as const;

/**
 * Finds values that JSON would silently store as something else: NaN as null, a Map as {}, a function not at all. A
 * value with a toJSON method defines its own JSON form (a Date: ISO text), and an undefined property counts as absent.
 * Two toJSON forms still count as losses, because they are never intended: null for an invalid Date, and a list of
 * numbers for a Buffer. Only for values that JSON.stringify has already accepted: they contain no circular references.
 */
export function lossIn(root: unknown): JsonTrouble | null {
  const loss = visit(root);
  if (loss === null) return null;
  return { what: loss.what, path: `$${loss.steps.toReversed().join("")}`.slice(0, 400) };
}

function visit(value: unknown): Loss | null {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? null : found(String(value));
    case "function":
    case "symbol":
      return found(`a ${typeof value}`);
    case "object":
      return value === null ? null : visitObject(value);
    default:
      return null;
  }
}

function visitObject(value: object): Loss | null {
  if (typeof Reflect.get(value, "toJSON") === "function") return visitSpeaker(value);
  if (Array.isArray(value)) return visitList(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const closed = CLOSED.find((one) => value instanceof one);
    if (closed !== undefined) return found(named(closed.name));
    if (ArrayBuffer.isView(value)) return found("binary data");
  }
  for (const key of Object.keys(value)) {
    const loss = visit(Reflect.get(value, key));
    if (loss !== null) return under(loss, key, value);
  }
  return null;
}

/** Accepts the JSON form of any value with a toJSON method, except for two types whose form is never intended. */
function visitSpeaker(value: object): Loss | null {
  const toJSON: unknown = Reflect.get(value, "toJSON");
  if (toJSON === Buffer.prototype.toJSON) return found("binary data");
  const invalid = toJSON === Date.prototype.toJSON && Number.isNaN(Number(value));
  return invalid ? found("an invalid Date") : null;
}

function visitList(list: readonly unknown[]): Loss | null {
  for (let i = 0; i < list.length; i++) {
    const loss = list[i] === undefined ? found("undefined in a list") : visit(list[i]);
    if (loss !== null) return under(loss, String(i), list);
  }
  return null;
}

function named(name: string): string {
  return `${/^[AE]/.test(name) ? "an" : "a"} ${name}`;
}

function found(what: string): Loss {
  return { what, steps: [] };
}

function under(loss: Loss, key: string, parent: object): Loss {
  loss.steps.push(pathStep(parent, key));
  return loss;
}
