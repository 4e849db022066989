import { randomUUID } from "node:crypto";
import { existsSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cached } from "./cache.js";
import { copyTree, hasCode, list, readText, writeWhole } from "./files.js";
import { initdb } from "./initdb.js";
import type { Site } from "./site.js";

export const pgdataOf = (root: string): string => join(root, "pgdata");

/** Whether the root is one of our temporary ones, to be removed with the server. */
export function isEphemeral(cache: string, root: string): boolean {
  return dirname(root) === cache && basename(root).startsWith("run-");
}

export function passwordOf(root: string): string {
  return (readText(join(root, "password")) ?? "").trim();
}

/** Makes the data directory unless there is one. A crash on the way leaves nothing half made. */
export async function ensureCluster(site: Site, root: string): Promise<void> {
  if (existsSync(pgdataOf(root))) return;
  forgetPartial(root);
  const partial = join(root, `partial.${randomUUID()}`);
  const password = isEphemeral(site.cache, root)
    ? await fromTemplate(site, partial)
    : await initdb({ ...site, pgdata: partial }, true);
  writeWhole(join(root, "password"), password);
  renameSync(partial, pgdataOf(root));
}

/** A killed process leaves its initdb running: it must never meet ours under the same name. */
function forgetPartial(root: string): void {
  for (const name of list(root).filter((entry) => entry.startsWith("partial."))) {
    try {
      rmSync(join(root, name), { recursive: true, force: true });
    } catch (error) {
      if (!hasCode(error, "ENOTEMPTY", "EBUSY")) throw error; // Still being filled.
    }
  }
}

/**
 * Ephemeral clusters are copies of one that was initialised once. They share its password, which only
 * this user can read; a data directory with a name gets one of its own.
 */
async function fromTemplate(site: Site, target: string): Promise<string> {
  const name = `template-${site.version}-${site.identity?.uid ?? "own"}`;
  const template = await cached(site.cache, name, async (directory) => {
    const password = await initdb({ ...site, pgdata: join(directory, "pgdata") }, false);
    writeWhole(join(directory, "password"), password);
  });
  await copyTree(join(template, "pgdata"), target);
  return passwordOf(template);
}
