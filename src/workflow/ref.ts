import type { Present } from "./stored.js";

declare const referred: unique symbol;

/** Stands for a value that will exist in a run. It can be passed on, and is typed as that value. */
export interface Reference<T> {
  /** Exists only as a type; there is nothing to read. */
  readonly [referred]: T;
}

/**
 * A reference whose members are references too: `list.accounts[0].id` records a path and reads nothing. A missing value
 * is null.
 */
export type Ref<T> = Reference<T> & Steps<T>;

type IsAny<T> = 0 extends 1 & T ? true : false;
/** The members of a reference. */
export type Steps<T> =
  IsAny<T> extends true
    ? { readonly [step: string]: Ref<T> }
    : unknown extends T
      ? unknown
      : StepsDown<NonNullable<T>, null extends T ? null : never>;
/** Gap is null if the value itself may be null: then everything below it may be null, too. */
type StepsDown<T, Gap> = [T] extends [string | number | boolean]
  ? unknown
  : [T] extends [readonly unknown[]]
    ? { readonly [index: number]: Ref<Present<T[number]> | null> }
    : { readonly [K in keyof T & (string | number)]: Ref<Present<T[K]> | Gap | Maybe<K>> };
/** A key known only as text or a number may be absent. */
type Maybe<K> = string extends K ? null : number extends K ? null : never;
