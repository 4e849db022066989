import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../core/ports.js";
import { isEphemeral, pgdataOf } from "./cluster.js";
import { list, readText, removeTree, writeWhole } from "./files.js";
import { halt } from "./halt.js";
import { tryLock } from "./lock.js";
import { liveReferences } from "./reference.js";
import type { Site } from "./site.js";

// Every server that somebody must stop has a file here. A process that is killed cannot stop its own,
// so each start looks for servers whose users are all dead and ends them.

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

/** Stops what dead processes left running and removes what they left behind. */
export async function sweep(site: Site, logger: Logger): Promise<void> {
  const names = list(join(site.cache, "servers")).filter((name) => /^[0-9a-f]+$/.test(name));
  for (const name of names.slice(0, sweptMax)) {
    const root = readText(join(site.cache, "servers", name));
    try {
      if (root === undefined || !(await sweepOne(site, root))) continue;
      logger.info("an abandoned PostgreSQL was stopped", { dataDir: root });
    } catch (error) {
      // Somebody else's mess must not keep us from starting.
      logger.warn("an abandoned PostgreSQL could not be stopped", { dataDir: root, error });
    }
  }
}

async function sweepOne(site: Site, root: string): Promise<boolean> {
  if (!existsSync(root)) {
    unregister(site.cache, root);
    return false;
  }
  // Whoever holds the lock is alive and decides for himself.
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
