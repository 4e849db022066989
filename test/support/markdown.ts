import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** The text of a file, named from the repository's root. */
export function pageText(page: string): string {
  return readFileSync(join(repository, page), "utf8");
}

/** A fenced block of code on a page. */
interface Block {
  /** What follows the language, as in "```ts tasks"; "" if nothing does. */
  readonly name: string;
  readonly code: string;
}

/** The blocks of one language on a page, in order. */
export function blocksOf(page: string, language: string): Block[] {
  const fences = pageText(page).matchAll(/^```(\S+)(?: (\S+))?\n([\s\S]*?)^```$/gm);
  return [...fences].filter(([, of]) => of === language).map(([, , name = "", code]) => ({ name, code: code! }));
}

const doors: Readonly<Record<string, string>> = {
  sluice: "src/index.js",
  "sluice/client": "src/client.js",
  "sluice/embedded": "src/embedded/index.js",
  "sluice/testing": "src/testing/index.js",
  "sluice/tx": "src/tx/index.js",
};

/** The pages' TypeScript as files that can be compiled and run. */
export interface Programs {
  readonly folder: string;
  /** Every file, by its path. */
  readonly files: readonly string[];
  /** The file made of a page's blocks that have no name; undefined if there are none. */
  fileOf(page: string): string | undefined;
  remove(): void;
}

/**
 * Writes the TypeScript of these pages into a folder of its own. The blocks of a page that have no name are one
 * program, in their order; a block with a name is a module beside it: "```ts tasks" can be imported as "./tasks.js".
 */
export function writePrograms(pages: readonly string[]): Programs {
  const folder = mkdtempSync(join(tmpdir(), "sluice-pages-"));
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const pathOf = (page: string, name: string): string => join(folder, page.replace(/\.md$/, ""), `${name}.ts`);
  const files = new Map<string, string>();
  for (const page of pages)
    for (const { name, code } of blocksOf(page, "ts")) {
      const path = pathOf(page, name === "" ? "page" : name);
      files.set(path, (files.get(path) ?? "") + withDoors(code));
    }
  for (const [path, code] of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
  }
  return {
    folder,
    files: [...files.keys()],
    fileOf: (page) => [pathOf(page, "page")].find((path) => files.has(path)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Imports of the package lead to its source. */
function withDoors(code: string): string {
  return code.replaceAll(/(?<=from )"(sluice(?:\/\w+)?)"/g, (_, door: string) =>
    JSON.stringify(resolve(repository, doors[door] ?? door)),
  );
}
