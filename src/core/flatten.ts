import { NESTING_MAX } from "./jsontext.js";

interface Walk {
  readonly ancestors: Set<object>;
  /** Every value takes at least one byte, so visiting more values than bytes is unnecessary. */
  valuesLeft: number;
}

/**
 * Returns a copy that JSON.stringify accepts: bigints become text; circular references and values that throw become a
 * short note.
 */
export function flatten(value: unknown, valuesMax: number): unknown {
  const walk = { ancestors: new Set<object>(), valuesLeft: valuesMax };
  const flat = visit(value, "", walk);
  return flat === undefined ? `[${typeof value}]` : flat;
}

function visit(value: unknown, key: string, walk: Walk): unknown {
  if (walk.valuesLeft-- <= 0) return "[truncated]";
  try {
    const stand = standIn(value, key);
    return typeof stand === "object" && stand !== null ? enter(stand, walk) : leaf(stand);
  } catch {
    return "[unserialisable]";
  }
}

/** Omits functions and symbols, as JSON does. */
function leaf(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return typeof value === "function" || typeof value === "symbol" ? undefined : value;
}

function enter(value: object, walk: Walk): unknown {
  if (walk.ancestors.has(value)) return "[circular]";
  if (walk.ancestors.size >= NESTING_MAX) return "[nested too deep]";
  walk.ancestors.add(value);
  try {
    return Array.isArray(value) ? visitArray(value, walk) : visitFields(value, walk);
  } finally {
    walk.ancestors.delete(value);
  }
}

/** Returns the value that JSON.stringify would use in place of this one. */
function standIn(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null) return value;
  const toJSON: unknown = Reflect.get(value, "toJSON");
  return typeof toJSON === "function" ? Reflect.apply(toJSON, value, [key]) : value;
}

function visitArray(items: readonly unknown[], walk: Walk): unknown[] {
  const flat: unknown[] = [];
  for (let i = 0; i < items.length && walk.valuesLeft > 0; i++) {
    flat.push(visitField(items, String(i), walk));
  }
  return flat;
}

function visitFields(fields: object, walk: Walk): object {
  // Without a prototype, "__proto__" is an ordinary key.
  const flat = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(fields)) {
    if (walk.valuesLeft <= 0) break;
    flat[key] = visitField(fields, key, walk);
  }
  return flat;
}

function visitField(holder: object, key: string, walk: Walk): unknown {
  let value: unknown;
  try {
    value = Reflect.get(holder, key);
  } catch {
    return "[unserialisable]";
  }
  return visit(value, key, walk);
}
