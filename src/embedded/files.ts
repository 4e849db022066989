import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";

/** Writes a file atomically: a reader, or a crash, finds all of it or nothing. */
export function writeWhole(path: string, text: string): void {
  const partial = `${path}.${randomUUID()}`;
  try {
    writeFileSync(partial, text, { mode: 0o600 });
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/**
 * Removes a tree that other processes may be using. It renames the tree first: otherwise a process that takes a lock
 * inside it, right after the previous lock file was removed, would hold a file in a directory that is being removed.
 */
export function removeTree(path: string): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  rmSync(aside, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
}

export function readText(path: string): string | undefined {
  return orMissing(() => readFileSync(path, "utf8"), undefined);
}

export function list(directory: string): string[] {
  return orMissing(() => readdirSync(directory), []);
}

export function countFiles(directory: string): number {
  return orMissing(() => readdirSync(directory, { recursive: true }).length, 0);
}

function orMissing<T>(read: () => T, missing: T): T {
  try {
    return read();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return missing;
    throw error;
  }
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? "");
}

/**
 * Copies a tree with its owners and modes. Uses `cp`, because Node's own copy drops the owner, and takes six times as
 * long for the thousand small files of a data directory.
 */
export async function copyTree(from: string, to: string): Promise<void> {
  if (process.platform === "win32") return cp(from, to, { recursive: true });
  await new Promise<void>((resolve, reject) => {
    const child = spawn("cp", ["-RPp", from, to], { stdio: ["ignore", "ignore", "pipe"] });
    const stderr: Buffer[] = [];
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    child.once("error", reject);
    child.once("close", (status) => {
      if (status === 0) resolve();
      else reject(new Error(`cp ended with ${status}: ${Buffer.concat(stderr).toString()}`));
    });
  });
}
