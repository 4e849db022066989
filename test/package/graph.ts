import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** All files and packages that a file loads, directly or indirectly. */
export interface Graph {
  /** Paths relative to the root. */
  readonly files: readonly string[];
  /** Names of packages and of Node.js modules. */
  readonly packages: readonly string[];
}

const specifier =
  /^\s*(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"|^\s*import\s*"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)/gm;

/** Walks imports, re-exports and `import()` of built files: .js, or the types of .d.ts. */
export function graphOf(root: string, entry: string): Graph {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = (file: string): void => {
    if (files.has(file)) return;
    files.add(file);
    for (const wanted of importsOf(file)) {
      if (wanted.startsWith(".")) visit(beside(file, wanted));
      else packages.add(wanted);
    }
  };
  visit(join(root, entry));
  return {
    files: [...files].map((file) => relative(root, file)).toSorted(),
    packages: [...packages].toSorted(),
  };
}

function importsOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(specifier)].map(([, from, bare, later]) => (from ?? bare ?? later)!);
}

function beside(file: string, wanted: string): string {
  const path = join(dirname(file), wanted);
  const found = file.endsWith(".d.ts") ? path.replace(/\.js$/, ".d.ts") : path;
  if (!existsSync(found)) throw new Error(`${file} imports ${wanted}, which is not there`);
  return found;
}
