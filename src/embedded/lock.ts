import { randomUUID } from "node:crypto";
import { linkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SluiceError } from "../core/error.js";
import { hasCode, list, readText, writeWhole } from "./files.js";
import { isAlive, thisProcess, type Living } from "./living.js";
import { until } from "./until.js";

// A lock that survives kill -9 of its holder and is never stolen from a live one.
//
// Files lock.1, lock.2, ... are generations; the highest one names the holder of the lock, or marks it as released. To
// acquire the lock, a process finds that the highest is free (released, or its holder is dead) and creates the next
// number, which only one process can do. The highest file is never removed, so numbers never repeat: a process that
// read the directory long ago and creates a number that was already used and removed sees a higher one when it reads
// again, and withdraws. The usual way, deleting a stale lock file, lets two processes delete each other's.

interface Mark extends Partial<Living> {
  readonly held: boolean;
}

const waitMs = 90_000;

/** Takes the lock if it is free and returns a function that releases it. */
export function tryLock(directory: string): (() => void) | undefined {
  const top = highest(directory);
  if (top > 0 && isHeld(join(directory, `lock.${top}`))) return undefined;
  const mine = top + 1;
  if (!create(directory, mine)) return undefined;
  if (highest(directory) !== mine) {
    rmSync(join(directory, `lock.${mine}`), { force: true });
    return undefined;
  }
  for (const n of generations(directory)) {
    if (n < mine) rmSync(join(directory, `lock.${n}`), { force: true });
  }
  return () => release(directory, mine);
}

/** Runs the body while holding the directory's lock. */
export async function withLock<T>(directory: string, body: () => Promise<T>): Promise<T> {
  const release = await until(waitMs, () => tryLock(directory));
  if (release === undefined) {
    const holder = readText(join(directory, `lock.${highest(directory)}`)) ?? "";
    throw new SluiceError("embedded_failed", `${directory} is still locked by ${holder.trim()}`);
  }
  try {
    return await body();
  } finally {
    release();
  }
}

function create(directory: string, n: number): boolean {
  const path = join(directory, `lock.${n}`);
  const whole = join(directory, `mark.${randomUUID()}`);
  try {
    // Linking a finished file makes its name and content appear together.
    writeFileSync(whole, JSON.stringify({ ...thisProcess(), held: true } satisfies Mark));
    linkSync(whole, path);
    return true;
  } catch (error) {
    // Another process was faster, or the directory has just been removed.
    if (hasCode(error, "EEXIST", "ENOENT")) return false;
    throw error;
  } finally {
    rmSync(whole, { force: true });
  }
}

function release(directory: string, n: number): void {
  try {
    writeWhole(join(directory, `lock.${n}`), JSON.stringify({ held: false } satisfies Mark));
  } catch (error) {
    // The body may have removed the directory with everything in it.
    if (!hasCode(error, "ENOENT")) throw error;
  }
}

function isHeld(path: string): boolean {
  const text = readText(path);
  if (text === undefined) return true; // Removed during the read: a higher one exists.
  const { held, pid, started } = JSON.parse(text) as Mark;
  return held && pid !== undefined && started !== undefined && isAlive({ pid, started });
}

function highest(directory: string): number {
  return Math.max(0, ...generations(directory));
}

function generations(directory: string): number[] {
  return list(directory).flatMap((name) => {
    const n = /^lock\.(\d+)$/.exec(name)?.[1];
    return n === undefined ? [] : [Number(n)];
  });
}
