// Runs every check, even after one has failed, and sums them up in the last line.
// `--only=vitest` runs that stage alone; all other arguments go to vitest.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const only = process.argv.find((arg) => arg.startsWith("--only="))?.slice("--only=".length);
const vitestArgs = process.argv.slice(2).filter((arg) => !arg.startsWith("--only="));
const stages = { "format:check": script, lint: script, typecheck: script, vitest };
const total = { passed: 0, failed: 0 };
/** The failures, one line each, which are repeated at the end. */
const failures = [];

if (only !== undefined && !(only in stages)) {
  console.error(`--only= must be one of ${Object.keys(stages).join(", ")}`);
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
for (const line of failures) console.log(`  FAILED  ${line}`);
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;

/** A stage without tests counts as one test. */
function script(name) {
  const ok = spawn("npm", ["run", "--silent", name]);
  if (!ok) failures.push(name);
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
    failures.push("vitest: it wrote no report");
    return { passed: 0, failed: 1 };
  }
  const before = failures.length;
  for (const file of results.testResults) {
    const name = relative(process.cwd(), file.name);
    // A file that cannot be loaded has no tests to count.
    if (file.status === "failed" && file.assertionResults.length === 0)
      failures.push(`${name}: ${firstLine(file.message)}`);
    for (const test of file.assertionResults)
      if (test.status === "failed") failures.push(`${name} > ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
  }
  // An unhandled error belongs to no test.
  if (failures.length === before && !ok) failures.push("vitest: an error outside of all tests");
  return { passed: results.numPassedTests, failed: failures.length - before };
}

function firstLine(message = "") {
  return message.split("\n", 1)[0].slice(0, 300);
}

function spawn(command, args) {
  const shell = process.platform === "win32" && command === "npm";
  return spawnSync(command, args, { stdio: "inherit", shell }).status === 0;
}
