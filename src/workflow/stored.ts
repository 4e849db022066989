type IsUnknown<T> = unknown extends T ? true : false;

/** What a value is once it was stored as JSON and read again: a Date is text. */
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

/** What is read where a value may be absent: JSON has no undefined, and a path that leads nowhere is null. */
export type Present<T> = IsUnknown<T> extends true ? T : undefined extends T ? Exclude<T, undefined> | null : T;

/** What a reference to a value sees once it was stored. */
export type Stored<T> = Present<JsonOf<T>>;

/** The same JSON, whether or not its lists and fields may be changed: what is handed on never is. */
export type Unchanged<T> =
  IsUnknown<T> extends true ? T : T extends object ? { readonly [K in keyof T]: Unchanged<T[K]> } : T;
