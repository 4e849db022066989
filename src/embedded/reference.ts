import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { list, readText, writeWhole } from "./files.js";
import { isAlive, thisProcess, type Living } from "./living.js";

// Who uses a server: one file per handle under `references`, naming the process that holds it. Read
// and written under the server's lock; what dead processes left behind is dropped on the way.

/** Registers this process as a user of the server and returns how to take that back. */
export function addReference(root: string): () => void {
  const directory = join(root, "references");
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${randomUUID()}.json`);
  writeWhole(path, JSON.stringify(thisProcess()));
  return () => rmSync(path, { force: true });
}

export function liveReferences(root: string): number {
  return list(join(root, "references")).filter((name) => {
    const path = join(root, "references", name);
    const living = name.endsWith(".json") && holderLives(readText(path));
    if (!living) rmSync(path, { force: true });
    return living;
  }).length;
}

function holderLives(text: string | undefined): boolean {
  return text !== undefined && isAlive(JSON.parse(text) as Living);
}
