import { SluiceError } from "../../src/core/error.js";

/** The SluiceError that a function throws. */
export function caught(fn: () => unknown): SluiceError {
  try {
    fn();
  } catch (e) {
    if (e instanceof SluiceError) return e;
    throw e;
  }
  throw new Error("nothing was thrown");
}

/** Texts that PostgreSQL cannot store. */
export const nul = "a\u0000b";
export const loneHigh = "a\ud800b";
export const loneLow = "a\udfffb";

/** Whether a text has a NUL or half a surrogate pair. */
export function unstorable(text: string): boolean {
  return /[\0\p{Cs}]/u.test(text);
}

/** An array in an array in an array. */
export function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

/** An object that throws whatever is done to it. */
export function hostile(): object {
  const refuse = (): never => {
    throw new Error("hostile");
  };
  return new Proxy({}, { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse });
}
