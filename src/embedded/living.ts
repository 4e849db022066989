import { spawnSync } from "node:child_process";
import { readText } from "./files.js";

/** A process, identified so that a later one with the same pid is not mistaken for it. */
export interface Living {
  readonly pid: number;
  readonly started: string;
}

let self: Living | undefined;

export function thisProcess(): Living {
  self ??= { pid: process.pid, started: startedAt(process.pid) ?? "" };
  return self;
}

export function isAlive({ pid, started }: Living): boolean {
  return startedAt(pid) === started;
}

/** Start time of the process, in the system's own format; undefined if it is not running. */
export function startedAt(pid: number): string | undefined {
  if (process.platform === "linux") return fromProc(pid);
  if (process.platform === "darwin") return ps(pid, "lstart=");
  return answers(pid) ? "" : undefined;
}

function fromProc(pid: number): string | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  // The command name is in brackets and may itself contain spaces and brackets.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  const zombie = fields?.[0] === "Z" || fields?.[0] === "X";
  return zombie ? undefined : fields?.[19];
}

function readProc(path: string): string | undefined {
  try {
    return readText(path);
  } catch {
    return undefined; // ESRCH: the process ended during the read.
  }
}

export function ps(pid: number, column: string): string | undefined {
  const { stdout } = spawnSync("ps", ["-ww", "-o", column, "-p", String(pid)], {
    encoding: "utf8",
  });
  return stdout.trim() || undefined;
}

function answers(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
