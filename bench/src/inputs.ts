import type { Input } from "./adapter.js";

/** Which task has which key. */
export interface Keys {
  readonly count: number;
  /** Each key in turn, or all tasks of a key one after the other. */
  readonly arrangement: "interleaved" | "contiguous";
}

/** So many inputs, n from 0 on. */
export function inputsOf(count: number, keys: Keys | null): Input[] {
  if (keys === null) return Array.from({ length: count }, (_, n) => ({ n }));
  const each = Math.ceil(count / keys.count);
  const keyOf = (n: number): number => (keys.arrangement === "interleaved" ? n % keys.count : Math.floor(n / each));
  return Array.from({ length: count }, (_, n) => ({ n, key: `key-${keyOf(n)}` }));
}
