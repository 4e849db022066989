import { readFileSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const repository = fileURLToPath(new URL("../..", import.meta.url));

const leftOut = new Set(["node_modules", "dist", "coverage", ".git"]);

/** Files below a folder of the repository, as slash-separated paths from its root. */
export function filesBelow(folder: string, ending = ""): string[] {
  let entries;
  try {
    entries = readdirSync(join(repository, folder), { withFileTypes: true });
  } catch {
    return [];
  }
  return entries
    .filter((entry) => !leftOut.has(entry.name))
    .flatMap((entry) => {
      const path = relative(repository, join(repository, folder, entry.name))
        .split(sep)
        .join("/");
      if (entry.isDirectory()) return filesBelow(path, ending);
      return entry.isFile() && path.endsWith(ending) ? [path] : [];
    })
    .toSorted();
}

export function textOf(path: string): string {
  return readFileSync(join(repository, path), "utf8");
}

export interface Parts {
  /** The text with comments blanked out. */
  readonly code: string;
  /** The strings between quotes, including the placeholders of templates. */
  readonly strings: readonly string[];
}

const token =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|(?<=[=(,:[!&|?{};\n]\s*|return )\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g;

/** Separates code, comments and strings, well enough for checks of names and words. */
export function partsOf(text: string): Parts {
  const strings: string[] = [];
  const code = text.replace(token, (found) => {
    if (/^["'`]/.test(found)) strings.push(found.slice(1, -1));
    if (/^\/[/*]/.test(found)) return found.replaceAll(/[^\n]/g, " ");
    return found;
  });
  return { code, strings };
}
