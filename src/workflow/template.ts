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

/** What a template renders to. */
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

/** Where a template stands, and what is done with each reference in it. */
interface TemplatePlace {
  readonly workflow: string;
  readonly node?: string;
  readonly use: (data: RefData) => void;
}

/** A template of code as plain data. What it holds is copied: changing it later changes nothing. */
export function templateData(value: unknown, place: TemplatePlace): TemplateData {
  const written = guarded(place, () => write(value, place, []));
  return inPlace(place, () => JSON.parse(encodeInput(written, GRAPH_BYTES_MAX)) as TemplateData);
}

/** Getters and proxies may throw whatever they like. */
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

/** With each reference as `$ref`. What is neither a list nor a plain object is left to be judged as a value. */
function write(value: unknown, place: TemplatePlace, above: readonly object[]): unknown {
  const data = refData(value);
  if (data !== undefined) {
    place.use(data);
    return { $ref: [data.root, ...data.path] };
  }
  if (typeof value !== "object" || value === null || !isPlain(value)) return value;
  // A circle, or what is nested too deep, is for the encoder to explain.
  if (above.length > NESTING_MAX || above.includes(value)) return value;
  const below = [...above, value];
  if (Array.isArray(value)) return value.map((member) => write(member, place, below));
  const marked = Object.hasOwn(value, "$ref") || Object.hasOwn(value, "$literal");
  return marked ? literal(value, place) : writeObject(value, place, below);
}

// From entries, so that a key "__proto__" stays a key.
function writeObject(value: object, place: TemplatePlace, below: readonly object[]): object {
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([key, of]) => [key, write(of, place, below)]));
}

/** An object that has our marks as keys of its own stands as it is. */
function literal(value: object, place: TemplatePlace): object {
  const refuse = (): never => {
    throw invalidWorkflow('an object with a key "$ref" or "$literal" cannot hold references', place);
  };
  writeObject(value, { ...place, use: refuse }, [value]);
  return { $literal: value };
}

/** A list or an object of its own fields, of which JSON is made without asking it. */
export function isPlain(value: object): boolean {
  if (typeof Reflect.get(value, "toJSON") === "function") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}
