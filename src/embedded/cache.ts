import { randomUUID } from "node:crypto";
import { lstatSync, mkdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SluiceError } from "../core/error.js";
import { countFiles, hasCode, readText, writeWhole } from "./files.js";
import { canRead, type Identity } from "./identity.js";

/** Our own directory inside the system's temporary one, for files that are created once and used often. */
export function openCache(identity: Identity | undefined): string {
  const path = join(temporary(identity), `sluice-embedded-${process.getuid?.() ?? "user"}`);
  mkdirSync(path, { recursive: true, mode: identity === undefined ? 0o700 : 0o755 });
  refuseForeign(path);
  return realpathSync(path);
}

/** As root, $TMPDIR may be a directory where the unprivileged server cannot reach its own binaries. */
function temporary(identity: Identity | undefined): string {
  const places = [tmpdir(), "/tmp", "/var/tmp"];
  const found = places.find((place) => identity === undefined || canEnter(place, identity));
  return found ?? tmpdir();
}

function canEnter(place: string, identity: Identity): boolean {
  try {
    return canRead(place, identity);
  } catch {
    return false;
  }
}

/** The name is predictable: another user may have created a directory there, with binaries of their own. */
function refuseForeign(path: string): void {
  if (process.getuid === undefined) return;
  const stat = lstatSync(path);
  if (stat.isDirectory() && stat.uid === process.getuid() && (stat.mode & 0o022) === 0) return;
  throw new SluiceError(
    "embedded_failed",
    `${path} belongs to another user or is writable by others: remove it, or set TMPDIR`,
  );
}

/**
 * The named directory of the cache, built on first use. It appears by rename, so it is complete. Its files are counted
 * before each use, because cleaners of temporary directories remove single old files.
 */
export async function cached(
  cache: string,
  name: string,
  build: (directory: string) => Promise<void>,
): Promise<string> {
  const home = join(cache, name);
  const content = join(home, "content");
  if (isWhole(home)) return content;
  const fresh = `${home}.${randomUUID()}`;
  try {
    mkdirSync(join(fresh, "content"), { recursive: true });
    await build(join(fresh, "content"));
    writeWhole(join(fresh, "files"), String(countFiles(join(fresh, "content"))));
    publish(fresh, home);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return content;
}

function isWhole(home: string): boolean {
  const files = readText(join(home, "files"));
  return files !== undefined && countFiles(join(home, "content")) === Number(files);
}

function publish(fresh: string, home: string): void {
  try {
    renameSync(fresh, home);
  } catch (error) {
    if (!hasCode(error, "ENOTEMPTY", "EEXIST", "EPERM")) throw error;
    if (isWhole(home)) return; // Another process was faster.
    const broken = `${home}.${randomUUID()}`;
    renameSync(home, broken);
    rmSync(broken, { recursive: true, force: true });
    renameSync(fresh, home);
  }
}
