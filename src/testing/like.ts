/**
 * Any part of a value: omitted properties are not compared. Lists are compared item by item and must have the same
 * length.
 */
export type Like<T> = T extends readonly (infer Item)[]
  ? readonly Like<Item>[]
  : T extends Date
    ? T
    : T extends object
      ? { readonly [K in keyof T]?: Like<T[K]> }
      : T;

const DIFFERENCES_MAX = 20;

/** The differences between wanted and found, one line each; empty if found matches. Both are JSON. */
export function differences(wanted: unknown, found: unknown, path: string): string[] {
  if (isRecord(wanted) && isRecord(found)) {
    return Object.keys(wanted)
      .flatMap((key) => differences(wanted[key], found[key], `${path}.${key}`))
      .slice(0, DIFFERENCES_MAX);
  }
  if (Array.isArray(wanted) && Array.isArray(found) && wanted.length === found.length) {
    return wanted.flatMap((item, i) => differences(item, found[i], `${path}[${i}]`)).slice(0, DIFFERENCES_MAX);
  }
  const [a, b] = [show(wanted), show(found)];
  return a === b ? [] : [`${path}: expected ${a}, found ${b}`];
}

/** The part of found that wanted covers, so that a diff of the two shows only what matters. */
export function partOf(wanted: unknown, found: unknown): unknown {
  if (!isRecord(wanted) || !isRecord(found)) return found;
  const keys = Object.keys(wanted).filter((key) => Object.hasOwn(found, key));
  return Object.fromEntries(keys.map((key) => [key, partOf(wanted[key], found[key])]));
}

/** A value as the database stores it: a Date becomes text. */
export function asStored(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}

const SHOWN_MAX = 200;

export function show(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value, sorted);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}

/** Sorts keys, because the order of an object's keys has no meaning. */
function sorted(_: string, value: unknown): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
