import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { locate, runnable, type Installed } from "../../src/embedded/binaries.js";
import { identityFor } from "../../src/embedded/identity.js";

// An install without scripts: the links between the libraries are missing.
let place: string;
let installed: Installed;
let cache: string;
const identity = identityFor();

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "sluice-binaries-"));
  chmodSync(place, 0o755);
  cache = join(place, "cache");
  mkdirSync(cache);
  const real = locate();
  installed = { version: real.version, native: join(place, "package", "native") };
  cpSync(real.native, installed.native, { recursive: true, verbatimSymlinks: true });
  unlinkAll();
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

function libraryLinks(native = installed.native): string[] {
  const library = join(native, "lib");
  return readdirSync(library).filter((name) => lstatSync(join(library, name)).isSymbolicLink());
}

function unlinkAll(): void {
  for (const name of libraryLinks()) rmSync(join(installed.native, "lib", name));
}

function versionSaid(bin: string): string {
  return spawnSync(join(bin, "initdb"), ["--version"], { encoding: "utf8", ...identity }).stdout;
}

test("the embedded server creates missing library links in the installed package", async () => {
  const links = JSON.parse(readFileSync(join(installed.native, "pg-symlinks.json"), "utf8")) as {
    target: string;
  }[];
  const bin = await runnable(installed, cache, identity);
  expect(bin).toBe(join(installed.native, "bin"));
  expect(libraryLinks().toSorted()).toEqual(links.map(({ target }) => basename(target)).toSorted());
  expect(versionSaid(bin)).toContain("PostgreSQL");
});

test("the embedded server copies its package once if the package is not readable or writable", async () => {
  unlinkAll();
  chmodSync(join(installed.native, "lib"), identity === undefined ? 0o500 : 0o700);
  const bin = await runnable(installed, cache, identity);
  expect(dirname(dirname(dirname(bin)))).toBe(cache);
  expect(versionSaid(bin)).toContain("PostgreSQL");
  const made = lstatSync(bin).ctimeMs;
  expect(await runnable(installed, cache, identity)).toBe(bin);
  expect(lstatSync(bin).ctimeMs).toBe(made);
});

test("the embedded server copies its package again if a file is missing from the copy", async () => {
  const bin = await runnable(installed, cache, identity);
  rmSync(join(bin, "initdb"));
  expect(await runnable(installed, cache, identity)).toBe(bin);
  expect(versionSaid(bin)).toContain("PostgreSQL");
  chmodSync(join(installed.native, "lib"), 0o755);
});
