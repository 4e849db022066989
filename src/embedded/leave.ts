import { isEphemeral, pgdataOf } from "./cluster.js";
import { removeTree } from "./files.js";
import { tryLock, withLock } from "./lock.js";
import { liveReferences, unregister } from "./registry.js";
import { halt, signalServer, findPostmaster } from "./server.js";
import type { Site } from "./site.js";
import { untilSync } from "./until.js";

/** One use of a server by this process. */
export interface Handle {
  readonly site: Site;
  readonly root: string;
  readonly persistent: boolean;
  readonly dropReference: () => void;
}

const exitLockMs = 1_000;
const exitStopMs = 3_000;
const open = new Set<Handle>();

/** Registers the handle, so that a process that exits without stop() does not leave its server running. */
export function leaveAtExit(handle: Handle): void {
  if (open.size === 0) process.on("exit", leaveAll);
  open.add(handle);
}

function leaveAll(): void {
  for (const handle of open) leaveSync(handle);
}

/** Ends this use of the server. The last user stops the server, unless it is persistent. */
export async function leave(handle: Handle): Promise<void> {
  await withLock(handle.root, async () => {
    const { site, root, persistent } = handle;
    if (!isLast(handle)) return;
    if (!persistent) await halt({ ...site, pgdata: pgdataOf(root) });
    if (isEphemeral(site.cache, root)) removeTree(root);
    unregister(site.cache, root);
  });
  open.delete(handle);
  if (open.size === 0) process.off("exit", leaveAll);
}

function isLast({ root, dropReference }: Handle): boolean {
  dropReference();
  return liveReferences(root) === 0;
}

function leaveSync(handle: Handle): void {
  const { site, root } = handle;
  const release = untilSync(exitLockMs, () => tryLock(root));
  if (release === undefined) return; // The next start cleans up: our reference dies with this process.
  try {
    if (!isLast(handle)) return;
    if (!handle.persistent) beginStop(root, isEphemeral(site.cache, root));
    unregister(site.cache, root);
  } finally {
    release();
  }
}

/** Begins to stop the server. Ephemeral data is never read again, and there is no time to be gentle with it. */
function beginStop(root: string, ephemeral: boolean): void {
  const pgdata = pgdataOf(root);
  const pid = findPostmaster(pgdata)?.pid;
  if (pid !== undefined) signalServer(pid, ephemeral ? "SIGQUIT" : "SIGINT");
  // The next process would join a server that does not report yet that it is stopping. If the server is our child, it
  // ends as a zombie, which counts as gone.
  untilSync(exitStopMs, () => {
    const found = findPostmaster(pgdata);
    return found === undefined || (found.stopping && !ephemeral) ? true : undefined;
  });
  if (ephemeral) removeTree(root);
}
