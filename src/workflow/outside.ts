import { isSluiceError } from "../core/error.js";
import { NESTING_MAX } from "../core/jsontext.js";
import type { Draft } from "./draft.js";
import { makeRef, refData } from "./proxy.js";
import { isPlain } from "./template.js";

/**
 * Returns a branch callback's return value as seen from outside the branch. Its references are marked, because their
 * values are null if the branch is not taken. Nodes stay nodes.
 */
export function seenOutside(draft: Draft, out: unknown, node: string): unknown {
  try {
    return look(draft, out, []);
  } catch (cause) {
    if (isSluiceError(cause)) throw cause;
    throw draft.fault("the return value of the callback cannot be inspected", node);
  }
}

function look(draft: Draft, value: unknown, above: readonly object[]): unknown {
  const data = refData(value);
  if (data !== undefined) {
    const outside = makeRef({ ...data, as: data.as ?? "outside" });
    return draft.alike(value as object, outside);
  }
  if (typeof value !== "object" || value === null || !isPlain(value)) return value;
  if (above.length > NESTING_MAX || above.includes(value)) return value;
  const below = [...above, value];
  const copy = Array.isArray(value)
    ? value.map((one) => look(draft, one, below))
    : Object.fromEntries(Object.entries(value).map(([key, of]) => [key, look(draft, of, below)]));
  return draft.alike(value, Object.freeze(copy));
}
