// Compiles the library and the bench into a folder of this run's own, then runs plain JavaScript, as
// production does. A folder per run: a build by somebody else in the middle changes nothing.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { nodeFor } from "./node.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const builds = join(here, "dist");
const build = join(builds, `run-${process.pid}`);

sweep();
try {
  const node = nodeFor(builds);
  process.exitCode = compile() ? await run(node) : 2;
} catch (e) {
  process.stderr.write(`${e.message}\n`);
  process.exitCode = 2;
} finally {
  rmSync(build, { recursive: true, force: true });
}

/** Removes what killed runs have left. */
function sweep() {
  mkdirSync(builds, { recursive: true });
  for (const name of readdirSync(builds)) {
    const pid = Number(/^run-(\d+)$/.exec(name)?.[1]);
    if (!Number.isNaN(pid) && !isAlive(pid)) {
      rmSync(join(builds, name), { recursive: true, force: true });
    }
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (e) {
    return e.code === "EPERM";
  }
}

function compile() {
  const tsc = join(here, "../node_modules/typescript/bin/tsc");
  const args = [tsc, "-p", join(here, "tsconfig.json"), "--outDir", build];
  // What tsc has to say must not get between the lines of --json.
  const { status } = spawnSync(process.execPath, args, { stdio: ["ignore", 2, 2] });
  if (status !== 0) return false;
  for (const sql of ["src/postgres/migrations", "src/postgres/functions"])
    cpSync(join(here, "..", sql), join(build, sql), { recursive: true });
  return true;
}

function run(node) {
  const main = join(build, "bench/src/main.js");
  const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: "inherit" });
  // A signal goes to the whole group: main stops its server first, and we wait for it.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  return new Promise((resolve) => child.once("close", (code) => resolve(code ?? 1)));
}
