// Runs every check, also after one has failed, and sums them up in one last line.
// `--only=vitest` runs that stage alone; all other arguments go to vitest.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const only = process.argv.find((arg) => arg.startsWith("--only="))?.slice("--only=".length);
const vitestArgs = process.argv.slice(2).filter((arg) => !arg.startsWith("--only="));
const stages = { "format:check": script, lint: script, typecheck: script, vitest };
const total = { passed: 0, failed: 0 };

if (only !== undefined && !(only in stages)) {
  console.error(`--only= wants one of ${Object.keys(stages).join(", ")}`);
  process.exit(2);
}

for (const [name, run] of Object.entries(stages)) {
  if (only !== undefined && only !== name) continue;
  console.log(`\n=== ${name} ===`);
  const { passed, failed } = run(name);
  console.log(`=== ${name}: ${passed} passed, ${failed} failed ===`);
  total.passed += passed;
  total.failed += failed;
}
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;

/** A stage without tests of its own counts as one. */
function script(name) {
  const ok = spawn("npm", ["run", "--silent", name]);
  return { passed: ok ? 1 : 0, failed: ok ? 0 : 1 };
}

function vitest() {
  const directory = mkdtempSync(join(tmpdir(), "sluice-report-"));
  const report = join(directory, "report.json");
  try {
    const ok = spawn(process.execPath, [
      "node_modules/vitest/vitest.mjs",
      "run",
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
      ...vitestArgs,
    ]);
    return counted(ok, report);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function counted(ok, report) {
  let results;
  try {
    results = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    return { passed: 0, failed: 1 };
  }
  // A file that cannot be loaded has no tests to count, and an unhandled error belongs to none.
  const unloadable = results.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  ).length;
  const failed = results.numFailedTests + unloadable;
  return { passed: results.numPassedTests, failed: failed === 0 && !ok ? 1 : failed };
}

function spawn(command, args) {
  const shell = process.platform === "win32" && command === "npm";
  return spawnSync(command, args, { stdio: "inherit", shell }).status === 0;
}
