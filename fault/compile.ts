// Processes that are killed every few seconds must start quickly: they run as plain JavaScript, compiled once.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("..", import.meta.url));

export interface Programs {
  readonly worker: string;
  readonly producer: string;
  remove(): void;
}

/** Each run has a folder of its own, so that two runs, or an edit meanwhile, do no harm. */
export function compile(): Programs {
  const cache = join(repository, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const out = mkdtempSync(join(cache, "fault-"));
  const remove = (): void => rmSync(out, { recursive: true, force: true });
  const args = [typescript(), "-p", join(repository, "fault/tsconfig.json"), "--outDir", out];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) {
    remove();
    throw new Error(`the programs of the run cannot be compiled:\n${stdout}`);
  }
  writeFileSync(join(out, "package.json"), `{ "type": "module" }\n`);
  for (const sql of ["src/postgres/migrations", "src/postgres/functions"])
    cpSync(join(repository, sql), join(out, sql), { recursive: true });
  const program = (name: string): string => join(out, "fault", "load", `${name}.js`);
  return { worker: program("worker"), producer: program("producer"), remove };
}

function typescript(): string {
  const manifest = createRequire(import.meta.url).resolve("typescript/package.json");
  return join(dirname(manifest), "bin", "tsc");
}
