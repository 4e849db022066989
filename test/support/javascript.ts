import { cp, mkdtemp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const repository = fileURLToPath(new URL("../..", import.meta.url));

const TRANSLATED = ["src/**/*.ts", "test/**/programs/*.ts", "test/support/audit.ts"];

interface Translation {
  readonly folder: string;
  readonly remove: () => Promise<void>;
}

/**
 * The sources and programs of tests as JavaScript, in a folder that finds the same packages: what is run a
 * hundred times need not be translated a hundred times.
 */
export async function translate(): Promise<Translation> {
  const cache = join(repository, "node_modules/.sluice");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "js-"));
  await build({
    entryPoints: TRANSLATED.map((files) => join(repository, files)),
    outdir: folder,
    outbase: repository,
    format: "esm",
    target: "node20",
    logLevel: "error",
  });
  for (const kept of ["package.json", "src/postgres/migrations", "src/postgres/functions"])
    await cp(join(repository, kept), join(folder, kept), { recursive: true });
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}
