import type { Present } from "./stored.js";

declare const referred: unique symbol;

/** Stands for a value that a run will have: what may be handed on, typed by what it will be. */
export interface Reference<T> {
  /** Only a type; nothing can be read here. */
  readonly [referred]: T;
}

/**
 * A reference whose members are references too: `list.accounts[0].id` records a path and reads nothing. What
 * may be missing will be null.
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
/** Gap is null where the value itself may be: then all below it may be, too. */
type StepsDown<T, Gap> = [T] extends [string | number | boolean]
  ? unknown
  : [T] extends [readonly unknown[]]
    ? { readonly [index: number]: Ref<Present<T[number]> | null> }
    : { readonly [K in keyof T & (string | number)]: Ref<Present<T[K]> | Gap | Maybe<K>> };
/** A key that is only known to be text may be absent. */
type Maybe<K> = string extends K ? null : number extends K ? null : never;
