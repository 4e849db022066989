import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "./pack.js";
import { npm, run, type Ended } from "./run.js";

/** An empty project with the tarball installed, like that of a new user. */
export async function install(folder: string, tarball: string, ...flags: string[]): Promise<void> {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  await npm(folder, "install", "--silent", ...flags, tarball);
}

/** Copies a test program into a project. */
export function copyProgram(folder: string, from: string, to: string): void {
  writeFileSync(join(folder, to), readFileSync(new URL(`programs/${from}`, import.meta.url)));
}

/** The quickstart exactly as the README shows it. */
export function writeQuickstart(folder: string): void {
  const example = readFileSync(join(repository, "examples/quickstart.ts"), "utf8");
  writeFileSync(join(folder, "quickstart.ts"), example.replace("../src/index.js", "sluice"));
}

/** Links our TypeScript and types of Node.js, through which a project cannot resolve our types of pg. */
export function addTypesOfNode(folder: string): void {
  mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
  const types = "node_modules/@types/node";
  symlinkSync(join(repository, types), join(folder, types));
}

/** Compiles with the strictest options, including the types of the package itself. */
export function compile(folder: string, options: object, files: readonly string[]): Promise<Ended> {
  const strict = { strict: true, skipLibCheck: false, target: "es2022", noEmitOnError: true };
  const config = { compilerOptions: { ...strict, ...options }, files };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(repository, "node_modules/typescript/bin/tsc");
  return run(process.execPath, [tsc, "-p", "tsconfig.json"], { cwd: folder });
}
