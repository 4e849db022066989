type IsUnknown<T> = unknown extends T ? true : false;

/** The type of a value after it was stored as JSON and read again: a Date is text. */
export type JsonOf<T> =
  IsUnknown<T> extends true
    ? T
    : T extends string | number | boolean | null | undefined
      ? T
      : T extends { toJSON(...args: never): infer J }
        ? JsonOf<J>
        : T extends bigint | symbol | ((...args: never) => unknown)
          ? never
          : T extends object
            ? { [K in keyof T]: JsonOf<T[K]> }
            : undefined;

/** The type read where a value may be absent: JSON has no undefined, and a path to a missing value is null. */
export type Present<T> = IsUnknown<T> extends true ? T : undefined extends T ? Exclude<T, undefined> | null : T;

/** The type that a reference to a stored value has. */
export type Stored<T> = Present<JsonOf<T>>;

/** The same JSON type with readonly lists and fields: values that are passed on never change. */
export type Unchanged<T> =
  IsUnknown<T> extends true ? T : T extends object ? { readonly [K in keyof T]: Unchanged<T[K]> } : T;
