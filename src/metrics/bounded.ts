import { LABEL_VALUES_MAX, OTHER } from "./catalogue.js";

/** Returns the entry for the name, created on first use. Beyond the maximum, all new names share one entry. */
export function bounded<T>(known: Map<string, T>, name: string, make: () => T): T {
  const key = known.has(name) || known.size < LABEL_VALUES_MAX ? name : OTHER;
  let found = known.get(key);
  if (found === undefined) known.set(key, (found = make()));
  return found;
}
