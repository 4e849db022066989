import type { IsUnknown, JsonOf } from "../core/jsontype.js";

export type { JsonOf };

/** The type read where a value may be absent: JSON has no undefined, and a path to a missing value is null. */
export type Present<T> = IsUnknown<T> extends true ? T : undefined extends T ? Exclude<T, undefined> | null : T;

/** The type that a reference to a stored value has. */
export type Stored<T> = Present<JsonOf<T>>;

/** The same JSON type with readonly lists and fields: values that are passed on never change. */
export type Unchanged<T> =
  IsUnknown<T> extends true ? T : T extends object ? { readonly [K in keyof T]: Unchanged<T[K]> } : T;
