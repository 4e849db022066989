import { readlinkSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { readText } from "./files.js";
import { ps, startedAt } from "./living.js";

/** A running server as its own postmaster.pid describes it. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly ready: boolean;
  readonly stopping: boolean;
}

/** The server that runs on this data directory, whoever started it; undefined if none does. */
export function findPostmaster(pgdata: string): Postmaster | undefined {
  const lines = readText(join(pgdata, "postmaster.pid"))?.split("\n");
  const pid = Number(lines?.[0]);
  if (lines === undefined || !(pid > 0) || !runsOn(pid, pgdata)) return undefined;
  const status = lines[7]?.trim();
  const port = Number(lines[3]);
  return { pid, port, ready: status === "ready", stopping: status === "stopping" };
}

/** After a crash the file stays behind, and its pid may belong to anyone by now. */
function runsOn(pid: number, pgdata: string): boolean {
  if (startedAt(pid) === undefined) return false;
  if (process.platform === "linux") return worksIn(pid, pgdata);
  if (process.platform === "darwin") return ps(pid, "args=")?.includes(pgdata) ?? false;
  return true;
}

function worksIn(pid: number, pgdata: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(pgdata);
  } catch {
    return false; // It ended, or it belongs to somebody else: not ours in either case.
  }
}
