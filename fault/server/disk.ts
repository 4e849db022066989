// A disk so small that it can be filled: a tmpfs, if this process may mount one.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";

export interface Disk {
  readonly path: string;
  /** Whether it can be filled without harm to anybody else. */
  readonly small: boolean;
  fill(): Promise<void>;
  free(): Promise<void>;
  remove(): void;
}

const CHUNK_BYTES = 16 * 1024 * 1024;
const PAGE_BYTES = 4096;

export function openDisk(path: string, sizeMb: number): Disk {
  mkdirSync(path, { recursive: true, mode: 0o711 });
  const small = mount(path, sizeMb);
  const ballast = join(path, "ballast");
  return {
    path,
    small,
    fill: () => (small ? fill(path, ballast) : Promise.reject(new Error(NO_SMALL_DISK))),
    free: () => rm(ballast, { force: true }),
    remove: () => {
      if (small) unmount(path);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

export const NO_SMALL_DISK = "a disk can be filled only where a tmpfs can be mounted (as root on Linux)";

function mount(path: string, sizeMb: number): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  const options = `size=${sizeMb}m,mode=0711`;
  return spawnSync("mount", ["-t", "tmpfs", "-o", options, "sluice-fault", path]).status === 0;
}

/** Lazily, if something still has a file open: it goes when that ends. */
function unmount(path: string): void {
  if (spawnSync("umount", [path]).status !== 0) spawnSync("umount", ["-l", path]);
}

/** Writes until nothing fits any more; others write meanwhile, so the last pages are taken one by one. */
async function fill(path: string, ballast: string): Promise<void> {
  const file = await open(ballast, "a");
  const zeros = Buffer.alloc(CHUNK_BYTES);
  try {
    for (let size = CHUNK_BYTES; size >= PAGE_BYTES;) {
      const { bavail, bsize } = await statfs(path);
      if (bavail * bsize < size) size = Math.floor(size / 2);
      else if (!(await appended(file, zeros.subarray(0, size)))) size = Math.floor(size / 2);
    }
  } finally {
    await file.close();
  }
}

async function appended(file: Awaited<ReturnType<typeof open>>, chunk: Buffer): Promise<boolean> {
  try {
    // Not appendFile, which takes a turn of the event loop for every 512 kB.
    return (await file.write(chunk)).bytesWritten === chunk.length;
  } catch (e) {
    if ((e as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw e;
  }
}
