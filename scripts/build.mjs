// tsc does not copy .sql files, and the store reads its migrations and functions next to its own code.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
rmSync("dist", { recursive: true, force: true });

const tsc = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
  stdio: "inherit",
});
if (tsc.status !== 0) process.exit(tsc.status ?? 1);

for (const room of ["migrations", "functions"])
  cpSync(`src/postgres/${room}`, `dist/postgres/${room}`, { recursive: true });
if (existsSync("dist/cli/main.js")) chmodSync("dist/cli/main.js", 0o755);
removeUnreachableTypes();

/** Declarations that no door of the package leads to are of no use to anybody. */
function removeUnreachableTypes() {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
  const doors = Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : [types]));
  const reached = new Set();
  const visit = (path) => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const [, target] of readFileSync(path, "utf8").matchAll(/["'](\.\.?\/[^"']+)\.js["']/g))
      visit(join(dirname(path), `${target}.d.ts`));
  };
  for (const door of doors) visit(join(door));
  for (const path of readdirSync("dist", { recursive: true, encoding: "utf8" })) {
    const file = join("dist", path);
    if (file.endsWith(".d.ts") && !reached.has(file)) rmSync(file);
  }
}
