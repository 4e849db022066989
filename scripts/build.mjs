// tsc does not copy .sql files, and the store reads its migrations next to its own code.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
rmSync("dist", { recursive: true, force: true });

const tsc = spawnSync(
  process.execPath,
  ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"],
  {
    stdio: "inherit",
  },
);
if (tsc.status !== 0) process.exit(tsc.status ?? 1);

const migrations = "src/postgres/migrations";
if (existsSync(migrations)) {
  cpSync(migrations, "dist/postgres/migrations", {
    recursive: true,
    filter: (path) => path.endsWith("migrations") || path.endsWith(".sql"),
  });
}
if (existsSync("dist/cli/main.js")) chmodSync("dist/cli/main.js", 0o755);
