/** What is asked of a node that is referred to: to be over, to have a value unless its branch was not taken, to have one. */
type Asked = "ended" | "outside" | "value";

/** The nodes that something refers to, each with the most that is asked of it. */
export type Uses = ReadonlyMap<string, Asked>;

const ORDER: readonly Asked[] = ["ended", "outside", "value"];

/** Notes that a node is referred to so. */
export function use(uses: Map<string, Asked>, name: string, asked: Asked): void {
  const before = uses.get(name);
  if (before === undefined || ORDER.indexOf(asked) > ORDER.indexOf(before)) uses.set(name, asked);
}

/** What two parts of one node refer to. */
export function usesOf(one: Uses, other: Uses): Uses {
  const uses = new Map(one);
  for (const [name, asked] of other) use(uses, name, asked);
  return uses;
}

/** Whether a node is read as one that has succeeded. */
export function needs(uses: Uses, name: string): boolean {
  return (uses.get(name) ?? "ended") !== "ended";
}
