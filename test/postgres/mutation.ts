import { readFileSync, readdirSync } from "node:fs";
import type { Session } from "../support/sql.js";

/** A guard that is taken out of one function of the schema. */
export interface Mutation {
  /** The function, without the schema's name. */
  readonly in: string;
  /** What stands there, and what stands there instead. */
  readonly edits: readonly (readonly [string, string])[];
}

const folder = new URL("../../src/postgres/migrations/", import.meta.url);

/** All migrations as one text. */
export function migrationText(): string {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .toSorted()
    .map((file) => readFileSync(new URL(file, folder), "utf8"))
    .join("\n");
}

/** Puts the mutated function in the place of the real one. Throws if the guard is not to be found. */
export function mutate({
  in: name,
  edits,
}: Mutation): (watcher: Pick<Session, "script">) => Promise<void> {
  const mutated = edits.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`sluice.${name} does not contain: ${from}`);
    return text.replaceAll(from, () => to);
  }, functionText(name));
  const text = mutated.replace("create function", "create or replace function");
  return async (watcher) => void (await watcher.script(text));
}

function functionText(name: string): string {
  const text = migrationText();
  const start = text.indexOf(`create function sluice.${name}(`);
  if (start < 0) throw new Error(`there is no function sluice.${name}`);
  // The body is the first quoted part; what ends it is alone at the end of a line.
  return text.slice(start, text.indexOf("$$;", start) + 3);
}
