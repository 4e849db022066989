/**
 * The requirement on a referenced node: it has ended; it has a value unless its branch was not taken; it has a value.
 */
type Asked = "ended" | "outside" | "value";

/** The referenced nodes, each with its strongest requirement. */
export type Uses = ReadonlyMap<string, Asked>;

const ORDER: readonly Asked[] = ["ended", "outside", "value"];

/** Records a requirement on a node. */
export function use(uses: Map<string, Asked>, name: string, asked: Asked): void {
  const before = uses.get(name);
  if (before === undefined || ORDER.indexOf(asked) > ORDER.indexOf(before)) uses.set(name, asked);
}

/** Merges the references of two parts of one node. */
export function usesOf(one: Uses, other: Uses): Uses {
  const uses = new Map(one);
  for (const [name, asked] of other) use(uses, name, asked);
  return uses;
}

/** Returns whether a node is read as one that has succeeded. */
export function needs(uses: Uses, name: string): boolean {
  return (uses.get(name) ?? "ended") !== "ended";
}
