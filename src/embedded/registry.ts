import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../core/ports.js";
import { isEphemeral, pgdataOf } from "./cluster.js";
import { list, readText, removeTree, writeWhole } from "./files.js";
import { isAlive, thisProcess, type Living } from "./living.js";
import { tryLock } from "./lock.js";
import { halt } from "./server.js";
import type { Site } from "./site.js";

// Every server that must be stopped has a file here. A killed process cannot stop its own server, so each start
// searches for servers whose users are all dead and stops them.

const sweptMax = 20;

function fileFor(cache: string, root: string): string {
  const name = createHash("sha256").update(root).digest("hex").slice(0, 16);
  return join(cache, "servers", name);
}

export function register(cache: string, root: string): void {
  mkdirSync(join(cache, "servers"), { recursive: true });
  writeWhole(fileFor(cache, root), root);
}

export function unregister(cache: string, root: string): void {
  rmSync(fileFor(cache, root), { force: true });
}

/** Stops servers that dead processes left running, and removes their files. */
export async function sweep(site: Site, logger: Logger): Promise<void> {
  const names = list(join(site.cache, "servers")).filter((name) => /^[0-9a-f]+$/.test(name));
  for (const name of names.slice(0, sweptMax)) {
    const root = readText(join(site.cache, "servers", name));
    try {
      if (root === undefined || !(await sweepOne(site, root))) continue;
      logger.info("an abandoned PostgreSQL was stopped", { dataDir: root });
    } catch (error) {
      // Another process's leftovers must not keep us from starting.
      logger.warn("an abandoned PostgreSQL could not be stopped", { dataDir: root, error });
    }
  }
}

async function sweepOne(site: Site, root: string): Promise<boolean> {
  if (!existsSync(root)) {
    unregister(site.cache, root);
    return false;
  }
  // A process that holds the lock is alive and decides for itself.
  const release = tryLock(root);
  if (release === undefined) return false;
  try {
    if (liveReferences(root) > 0) return false;
    await halt({ ...site, pgdata: pgdataOf(root) });
    if (isEphemeral(site.cache, root)) removeTree(root);
    unregister(site.cache, root);
    return true;
  } finally {
    release();
  }
}

// The users of a server: one file per handle under `references`, naming the process that holds it. Files are read and
// written under the server's lock; those of dead processes are dropped on the way.

/** Registers this process as a user of the server and returns a function that unregisters it. */
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
