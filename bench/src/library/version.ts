import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The version of an installed package, from its package.json. Its exports may hide that file from import. */
export function versionOf(name: string): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const version = versionIn(join(folder, "node_modules", name, "package.json"));
    if (version !== null) return version;
    if (dirname(folder) === folder) throw new Error(`${name} is not installed`);
  }
}

/** The version of this repository's own package. */
export function ownVersion(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const version = versionIn(join(folder, "package.json"), "sluice");
    if (version !== null) return version;
    if (dirname(folder) === folder) throw new Error("no package.json of sluice above the bench");
  }
}

function versionIn(path: string, name?: string): string | null {
  try {
    const found = JSON.parse(readFileSync(path, "utf8")) as { name: string; version: string };
    return name === undefined || found.name === name ? found.version : null;
  } catch {
    return null;
  }
}
