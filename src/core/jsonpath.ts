import { quote } from "./quote.js";

/** A value that JSON cannot represent, and its path. */
export interface JsonTrouble {
  readonly what: string;
  readonly path: string;
}

interface Step {
  readonly value: unknown;
  readonly path: string;
}

/** Finds the BigInt or the circular reference that made JSON.stringify throw; null if the cause was something else. */
export function pathOfTrouble(root: unknown): JsonTrouble | null {
  let trouble: JsonTrouble | null = null;
  const trail: Step[] = [];
  try {
    JSON.stringify(root, function (this: unknown, key: string, value: unknown) {
      while (trail.length > 0 && trail.at(-1)?.value !== this) trail.pop();
      const step = { value, path: trail.length === 0 ? "$" : join(trail.at(-1)!, key) };
      trouble = troubleWith(step, trail);
      if (trouble !== null) throw trouble;
      trail.push(step);
      return value;
    });
  } catch {
    return trouble;
  }
  return null;
}

function troubleWith({ value, path }: Step, trail: readonly Step[]): JsonTrouble | null {
  if (typeof value === "bigint") return { what: "a BigInt", path };
  if (typeof value !== "object" || value === null) return null;
  const seen = trail.find((step) => step.value === value);
  return seen === undefined ? null : { what: `a circular reference to ${seen.path}`, path };
}

function join(parent: Step, key: string): string {
  return (parent.path + pathStep(parent.value, key)).slice(0, 400);
}

/** Formats one step from a list or an object to a member, as part of a path. */
export function pathStep(parent: unknown, key: string): string {
  return Array.isArray(parent) ? `[${key}]` : `.${quote(key).slice(1, -1)}`;
}
