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

/** Remembers the handle, so that a process which just ends does not leave its server running. */
export function leaveAtExit(handle: Handle): void {
  if (open.size === 0) process.on("exit", leaveAll);
  open.add(handle);
}

function leaveAll(): void {
  for (const handle of open) leaveSync(handle);
}

/** Gives the server up; the last one out stops it, unless it is to stay. */
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
  if (release === undefined) return; // The next start sweeps up: our reference dies with us.
  try {
    if (!isLast(handle)) return;
    if (!handle.persistent) beginStop(root, isEphemeral(site.cache, root));
    unregister(site.cache, root);
  } finally {
    release();
  }
}

/** There is no time to be gentle with data that nobody will see again. */
function beginStop(root: string, ephemeral: boolean): void {
  const pgdata = pgdataOf(root);
  const pid = findPostmaster(pgdata)?.pid;
  if (pid !== undefined) signalServer(pid, ephemeral ? "SIGQUIT" : "SIGINT");
  // A server that does not say yet that it stops would be joined by the next process. If it is our
  // child it is a zombie in the end, which counts as gone.
  untilSync(exitStopMs, () => {
    const found = findPostmaster(pgdata);
    return found === undefined || (found.stopping && !ephemeral) ? true : undefined;
  });
  if (ephemeral) removeTree(root);
}
