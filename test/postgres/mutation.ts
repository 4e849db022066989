import { readFileSync, readdirSync } from "node:fs";
import { basename } from "node:path";
import { withSettings } from "../../src/postgres/schema-files.js";
import { replaceMarked } from "../support/marker.js";
import type { Session } from "../support/sql.js";

/** A guard that is taken out of one function of the schema. */
export interface Mutation {
  /** The function, without the schema's name. */
  readonly in: string;
  /** Markers in its file (`/* guard:fence *\/`), and what stands there instead. */
  readonly edits: readonly (readonly [string, string])[];
  /** Another function that must change for the same guard. */
  readonly beside?: Mutation;
}

const folder = new URL("../../src/postgres/functions/", import.meta.url);

/** The files of all functions, by name. */
const paths = new Map(
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".sql"))
    .map((path) => [basename(path, ".sql"), path]),
);

/** All functions as one text. */
export function functionTexts(): string {
  return [...paths.keys()].map(functionText).join("\n");
}

/** Puts the mutated function in the place of the real one. Throws if the guard is not to be found. */
export function mutate(mutation: Mutation): (watcher: Pick<Session, "script">) => Promise<void> {
  const mutated = mutatedText(mutation);
  return async (watcher) => void (await watcher.script(withSettings(mutated)));
}

function mutatedText({ in: name, edits, beside }: Mutation): string {
  const text = edits.reduce((all, [marker, instead]) => replaceMarked(all, marker, instead), functionText(name));
  return beside === undefined ? text : `${text}\n${mutatedText(beside)}`;
}

function functionText(name: string): string {
  const path = paths.get(name);
  if (path === undefined) throw new Error(`there is no function sluice.${name}`);
  return readFileSync(new URL(path, folder), "utf8");
}
