import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** The text of a file, named from the repository's root. */
export function pageText(page: string): string {
  return readFileSync(join(repository, page), "utf8");
}

/** All pages of the documentation, named from the repository's root. */
export function docsPages(): string[] {
  return readdirSync(join(repository, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file.replaceAll("\\", "/")}`)
    .toSorted();
}

/** A fenced block of code on a page. */
interface Block {
  /** What follows the language, as in "```ts tasks"; "" if nothing does. */
  readonly name: string;
  readonly code: string;
  /** How many lines of the page are above its first. */
  readonly above: number;
}

/** The blocks of one language on a page, in order. */
export function blocksOf(page: string, language: string): Block[] {
  return blocksIn(pageText(page), language);
}

function blocksIn(text: string, language: string): Block[] {
  const fences = text.matchAll(/^```(\S+)(?: (\S+))?\n([\s\S]*?)^```$/gm);
  return [...fences]
    .filter(([, of]) => of === language)
    .map(({ index, 2: name = "", 3: code }) => ({
      name,
      code: code!,
      above: text.slice(0, index).split("\n").length,
    }));
}

/** A page and its text. */
export interface Page {
  readonly page: string;
  readonly text: string;
}

/** One file made of blocks of a page. */
export interface Program {
  readonly page: string;
  /** "tasks" of a block that has this name; else "1" for the first program of the page, and so on. */
  readonly name: string;
  /** As on the page, and on the same lines. */
  readonly code: string;
}

/**
 * The TypeScript of a page as files. A block with a name is a module of its own: "```ts tasks" can be imported as
 * "./tasks.js". Of those without a name, one with an import begins a program, and the others continue the last one.
 */
export function programsOf({ page, text }: Page): Program[] {
  const codes = new Map<string, string>();
  let programs = 0;
  for (const { name, code, above } of blocksIn(text, "ts")) {
    if (name === "" && (programs === 0 || /^import /m.test(code))) programs++;
    const file = name === "" ? String(programs) : name;
    const before = codes.get(file) ?? "";
    codes.set(file, before + "\n".repeat(above - (before.split("\n").length - 1)) + code);
  }
  return [...codes].map(([name, code]) => ({ page, name, code }));
}

const doors: Readonly<Record<string, string>> = {
  sluice: "src/index.js",
  "sluice/client": "src/client.js",
  "sluice/embedded": "src/embedded/index.js",
  "sluice/testing": "src/testing/index.js",
  "sluice/tx": "src/tx/index.js",
};

/** Programs as files that can be compiled and run. */
export interface Written {
  readonly folder: string;
  pathOf(program: Program): string;
  remove(): void;
}

/** Writes programs into a folder of its own, where imports of the package lead to its source. */
export function writePrograms(programs: readonly Program[]): Written {
  const folder = mkdtempSync(join(tmpdir(), "sluice-pages-"));
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const pathOf = ({ page, name }: Program): string => join(folder, page, `${name}.ts`);
  for (const program of programs) {
    mkdirSync(dirname(pathOf(program)), { recursive: true });
    writeFileSync(pathOf(program), withDoors(program.code));
  }
  return { folder, pathOf, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function withDoors(code: string): string {
  return code.replaceAll(/(?<=from )"(sluice(?:\/\w+)?)"/g, (_, door: string) =>
    JSON.stringify(resolve(repository, doors[door] ?? door)),
  );
}
