import type { StandardSchemaV1 } from "@standard-schema/spec";
import { SluiceError } from "./error.js";
import type { Arrived } from "./jsontype.js";
import { clip } from "./text.js";

/** Any Standard Schema: zod, valibot, arktype, or `type<T>()`. */
export type Schema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>;
/** The type that a schema accepts. */
export type InputOf<S extends Schema> = StandardSchemaV1.InferInput<S>;
/** The type that a schema returns. */
export type OutputOf<S extends Schema> = StandardSchemaV1.InferOutput<S>;

declare const given: unique symbol;
/** The schema of `type<T>()`: enqueue takes a T, and the handler receives what JSON makes of it. */
interface TypeOnly<T> extends Schema<T, Arrived<T>> {
  /** Exists only as a type. */
  readonly [given]: T;
}

/** The type that a handler may return for an output schema: with `type<T>()` also a T that becomes JSON. */
export type ReturnedOf<S extends Schema> = S extends { readonly [given]: infer T } ? T | OutputOf<S> : OutputOf<S>;

/** One issue that a schema reports about an input. */
interface InputIssue {
  readonly path: string;
  readonly message: string;
}

const ISSUES_MAX = 20;
const ISSUE_BYTES_MAX = 512;

// One shared object, so that it can be distinguished from schemas that inspect their input.
const anything: Schema = schemaOf((value) => ({ value }));

/**
 * A schema that has only a type: it accepts every value without checking it. Values are stored as JSON, so a `Date` in T
 * arrives as a string, and the type says so.
 */
export function type<T>(): TypeOnly<T> {
  return anything as TypeOnly<T>;
}

/** Returns whether a schema accepts every value, so that calling it is unnecessary. */
export function acceptsAnything(schema: Schema): boolean {
  return schema === anything;
}

/** The schema of a task without input. Its stored input is JSON null. */
export const noInput: Schema<undefined> = schemaOf((value) =>
  value === undefined || value === null ? { value: undefined } : { issues: [{ message: "this task takes no input" }] },
);

/** Returns whether a value implements Standard Schema. */
export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard: unknown = Reflect.get(value, "~standard");
  return typeof standard === "object" && standard !== null && typeof Reflect.get(standard, "validate") === "function";
}

/** Returns a value as parsed by the schema, synchronously if the schema is synchronous; throws `input_invalid`. */
export function validate<S extends Schema>(schema: S, value: unknown): OutputOf<S> | Promise<OutputOf<S>> {
  let result;
  try {
    result = schema["~standard"].validate(value);
  } catch (cause) {
    throw validatorThrew(cause);
  }
  if (!(result instanceof Promise)) return settle(schema, value, result);
  return result.then((checked) => settle(schema, value, checked), rethrow);
}

/**
 * Returns a stored value as parsed by the schema. JSON has no undefined, so it is stored as null: if a schema refuses
 * null, undefined is tried. Enqueue and the worker both call this function, so they accept the same values.
 */
export function validateStored<S extends Schema>(schema: S, stored: unknown): OutputOf<S> | Promise<OutputOf<S>> {
  if (stored !== null) return validate(schema, stored);
  let result;
  try {
    result = validate(schema, null);
  } catch (refusal) {
    return orUndefined(schema, refusal);
  }
  if (!(result instanceof Promise)) return result;
  return result.catch((refusal: unknown) => orUndefined(schema, refusal));
}

/** Tries undefined; if the schema refuses that too, throws its refusal of null. */
function orUndefined<S extends Schema>(schema: S, refusal: unknown): OutputOf<S> | Promise<OutputOf<S>> {
  const refuse = (): never => {
    throw refusal;
  };
  let result;
  try {
    result = validate(schema, undefined);
  } catch {
    return refuse();
  }
  return result instanceof Promise ? result.catch(refuse) : result;
}

function schemaOf<T>(check: (value: unknown) => StandardSchemaV1.Result<T>): Schema<T> {
  return { "~standard": { version: 1, vendor: "sluice", validate: check } };
}

function settle<S extends Schema>(schema: S, value: unknown, result: StandardSchemaV1.Result<unknown>): OutputOf<S> {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.slice(0, ISSUES_MAX).map(plainIssue);
  const first = issues.map((i) => (i.path === "" ? i.message : `${i.path}: ${i.message}`))[0];
  const more = result.issues.length > 1 ? ` (and ${result.issues.length - 1} more)` : "";
  const hint = dateHint(schema, value, result.issues);
  const message = `the input is not valid: ${first ?? "no reason given"}${more}${hint === null ? "" : `; ${hint}`}`;
  throw new SluiceError("input_invalid", message, { details: { issues, ...(hint === null ? {} : { hint }) } });
}

/** A hint for a schema that wants a Date where JSON has text, or null. */
function dateHint(schema: Schema, value: unknown, issues: readonly StandardSchemaV1.Issue[]): string | null {
  const wantsDate = issues.slice(0, ISSUES_MAX).some((issue) => isDateWanted(issue) && isText(value, issue.path ?? []));
  if (!wantsDate) return null;
  const remedy = schema["~standard"].vendor === "zod" ? "use z.coerce.date()" : "let the schema parse them";
  return `inputs are JSON: dates arrive as strings; ${remedy}`;
}

/** zod and valibot say what they expected; others say it in the message. */
function isDateWanted(issue: StandardSchemaV1.Issue): boolean {
  const { expected } = issue as { readonly expected?: unknown };
  return typeof expected === "string" ? /^(a )?date$/i.test(expected) : /\ba Date\b/.test(issue.message);
}

/** Whether the value at this path is text. */
function isText(value: unknown, path: NonNullable<StandardSchemaV1.Issue["path"]>): boolean {
  let at = value;
  for (const step of path) {
    if (typeof at !== "object" || at === null) return false;
    at = (at as Record<PropertyKey, unknown>)[typeof step === "object" ? step.key : step];
  }
  return typeof at === "string";
}

function plainIssue({ path, message }: StandardSchemaV1.Issue): InputIssue {
  const steps = (path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
  return {
    path: clip(steps.join("."), ISSUE_BYTES_MAX),
    message: clip(message, ISSUE_BYTES_MAX),
  };
}

function rethrow(cause: unknown): never {
  throw validatorThrew(cause);
}

function validatorThrew(cause: unknown): SluiceError {
  return new SluiceError("input_invalid", "the schema threw while it validated the input", { cause });
}
