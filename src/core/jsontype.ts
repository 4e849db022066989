export type IsUnknown<T> = unknown extends T ? true : false;

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

/** The type in which a handler receives a value: T itself if JSON holds it unchanged, else its JSON type. */
export type Arrived<T> = [T] extends [JsonOf<T>] ? T : JsonOf<T>;
