import { isSluiceError } from "../core/error.js";
import { encodeInput } from "../core/json.js";
import { NESTING_MAX } from "../core/jsontext.js";
import { inPlace, invalidWorkflow } from "./fault.js";
import { GRAPH_BYTES_MAX, type TemplateData } from "./graph.js";
import { refData, type RefData } from "./proxy.js";
import type { Reference } from "./ref.js";
import type { JsonOf, Unchanged } from "./stored.js";

/** A value of a type, in which any part may be a reference to a value of that part's type. */
export type Template<T> = Reference<Unchanged<JsonOf<T>>> | Shape<T>;

type Leaf = string | number | boolean | bigint | symbol | null | undefined | Date;
type Shape<T> = unknown extends T
  ? T
  : T extends Leaf | { toJSON(...args: never): unknown }
    ? T
    : T extends object
      ? { readonly [K in keyof T]: Template<T[K]> }
      : T;

/** The type that a template renders to. */
export type Rendered<R> =
  R extends Reference<infer T>
    ? T
    : R extends Leaf
      ? JsonOf<R>
      : R extends readonly unknown[]
        ? { [K in keyof R]: Rendered<R[K]> }
        : R extends object
          ? { [K in keyof R & (string | number)]: Rendered<R[K]> }
          : JsonOf<R>;

/** The location of a template, and the function called for each of its references. */
interface TemplatePlace {
  readonly workflow: string;
  readonly node?: string;
  readonly use: (data: RefData) => void;
}

/** Returns a template written in code as plain data. The data is a copy: later changes to the value have no effect. */
export function templateData(value: unknown, place: TemplatePlace): TemplateData {
  const written = guarded(place, () => write(value, place, []));
  return inPlace(place, () => JSON.parse(encodeInput(written, GRAPH_BYTES_MAX)) as TemplateData);
}

/** Getters and proxies may throw anything. */
function guarded<T>(place: TemplatePlace, look: () => T): T {
  try {
    return look();
  } catch (cause) {
    if (isSluiceError(cause)) throw cause;
    throw invalidWorkflow("the input is not JSON: a getter or a proxy in it threw", {
      ...place,
      cause,
    });
  }
}

/**
 * Replaces each reference with `$ref`. Values that are neither lists nor plain objects are checked later, as values.
 */
function write(value: unknown, place: TemplatePlace, above: readonly object[]): unknown {
  const data = refData(value);
  if (data !== undefined) {
    place.use(data);
    return { $ref: [data.root, ...data.path] };
  }
  if (typeof value !== "object" || value === null || !isPlain(value)) return value;
  // The encoder reports circular references and values that are nested too deep.
  if (above.length > NESTING_MAX || above.includes(value)) return value;
  const below = [...above, value];
  if (Array.isArray(value)) return value.map((member) => write(member, place, below));
  const marked = Object.hasOwn(value, "$ref") || Object.hasOwn(value, "$literal");
  return marked ? literal(value, place) : writeObject(value, place, below);
}

// Built from entries, so that a key "__proto__" stays a key.
function writeObject(value: object, place: TemplatePlace, below: readonly object[]): object {
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([key, of]) => [key, write(of, place, below)]));
}

/** Wraps an object that uses `$ref` or `$literal` as its own key, so that it is stored unchanged. */
function literal(value: object, place: TemplatePlace): object {
  const refuse = (): never => {
    throw invalidWorkflow('an object with a key "$ref" or "$literal" cannot hold references', place);
  };
  writeObject(value, { ...place, use: refuse }, [value]);
  return { $literal: value };
}

/** Returns whether a value is a list or plain object whose own fields alone determine its JSON. */
export function isPlain(value: object): boolean {
  if (typeof Reflect.get(value, "toJSON") === "function") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}
