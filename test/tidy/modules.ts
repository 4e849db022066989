import { posix } from "node:path";
import { partsOf, textOf } from "./source.js";

export interface Import {
  /** The path from the repository root for our own modules, otherwise the name of the package. */
  readonly from: string;
  /** The imported names, or undefined for all of them. */
  readonly names: readonly string[] | undefined;
  readonly typeOnly: boolean;
}

const statement =
  /\b(?:import|export)\s+(type\s+)?((?:[\w$*]+|\{[^}]*\})(?:\s*,\s*(?:\{[^}]*\}|\*\s*as\s+\w+))?|\*\s+as\s+\w+)\s+from\s*["']([^"']+)["']/g;
const bare = /\bimport\s*\(?\s*["']([^"']+)["']/g;

/** Everything a file imports or re-exports. */
export function importsOf(path: string): Import[] {
  const { code } = partsOf(textOf(path));
  const named = [...code.matchAll(statement)].map(([, type, clause, from]) => ({
    from: resolved(path, from!),
    names: namesIn(clause!),
    typeOnly: type !== undefined,
  }));
  const whole = [...code.matchAll(bare)].map(([, from]) => ({
    from: resolved(path, from!),
    names: undefined,
    typeOnly: false,
  }));
  return [...named, ...whole];
}

function resolved(path: string, from: string): string {
  if (!from.startsWith(".")) return from;
  return posix.join(posix.dirname(path), from).replace(/\.js$/, ".ts");
}

function namesIn(clause: string): string[] | undefined {
  if (clause.includes("*")) return undefined;
  const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? "";
  const names = listed(braces).map((name) => name.split(/\s+as\s+/)[0]!);
  return /^\s*\{/.test(clause) ? names : [...names, "default"];
}

function listed(braces: string): string[] {
  return braces
    .split(",")
    .map((name) => name.trim().replace(/^type\s+/, ""))
    .filter((name) => name !== "");
}

const declaration =
  /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\*?|const|let|class|interface|type|enum)\s+([\w$]+)/gm;
const local = /^export\s+(?:type\s+)?\{([^}]*)\}\s*;/gm;

/** The names a file declares and exports itself. */
export function exportsOf(path: string): string[] {
  const { code } = partsOf(textOf(path));
  const declared = [...code.matchAll(declaration)].map(([, name]) => name!);
  const collected = [...code.matchAll(local)].flatMap(([, braces]) =>
    listed(braces!).map((name) => name.split(/\s+as\s+/).at(-1)!),
  );
  const byDefault = /^export\s+default\b/m.test(code) ? ["default"] : [];
  return [...declared, ...collected, ...byDefault];
}
