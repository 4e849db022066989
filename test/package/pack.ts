import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { npm } from "./run.js";

export const repository = fileURLToPath(new URL("../..", import.meta.url));

/** The result of `npm pack`. */
export interface Packed {
  readonly tarball: string;
  /** The packed files, as they are before packing. */
  readonly folder: string;
  /** Paths relative to that folder. */
  readonly files: readonly string[];
  readonly bytes: number;
  readonly unpackedBytes: number;
}

/** The parts of package.json that tests read. */
export interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { types: string; default: string }>>;
}

export function manifest(): Manifest {
  return JSON.parse(readFileSync(join(repository, "package.json"), "utf8")) as Manifest;
}

/** Builds and packs as `npm publish` does, in a copy, because other processes may be using dist. */
export async function pack(below: string): Promise<Packed> {
  const folder = join(below, "source");
  mkdirSync(folder);
  const built = ["src", "scripts", "package.json", "tsconfig.json", "tsconfig.build.json"];
  const pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "examples"];
  for (const part of [...built, ...pages, "bench/README.md", "fault/README.md", "LICENSE"])
    cpSync(join(repository, part), join(folder, part), { recursive: true });
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"));
  const [report] = JSON.parse(await npm(folder, "pack", "--json", "--silent")) as [
    { filename: string; size: number; unpackedSize: number; files: { path: string }[] },
  ];
  return {
    tarball: join(folder, report.filename),
    folder,
    files: report.files.map((file) => file.path),
    bytes: report.size,
    unpackedBytes: report.unpackedSize,
  };
}
