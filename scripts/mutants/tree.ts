import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { replaceMarked } from "../../test/support/marker.js";
import type { Guard } from "./guards.js";
import type { Mutant } from "./list.js";

const COPIED = ["src", "test", "fault", "docs", "vitest.config.ts", "tsconfig.json", "package.json"];
const RUN_MS_MAX = 90_000;
// Many tests at once.
export const LONG_RUN_MS_MAX = 420_000;

/** What vitest tells of one test. */
interface Result {
  readonly title: string;
  readonly status: string;
  readonly failureMessages: readonly string[];
}

/** A private copy of the tree, in which texts may be changed. */
export class Tree {
  readonly #root: string;
  readonly #url: string;

  constructor(from: string, root: string, url: string) {
    this.#root = root;
    this.#url = url;
    mkdirSync(root, { recursive: true });
    for (const name of COPIED) cpSync(join(from, name), join(root, name), { recursive: true });
    symlinkSync(join(from, "node_modules"), join(root, "node_modules"), "dir");
  }

  /** Null if the mutant died as it should, else what is wrong. */
  async kill(guard: Guard, mutant: Mutant): Promise<string | null> {
    const path = join(this.#root, guard.in);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, replaceMarked(text, mutant.at, mutant.to));
    try {
      const { file, name } = guard.test;
      const [result] = (await this.run([file], [name])).filter((r) => r.title === name);
      return verdict(result, mutant);
    } finally {
      writeFileSync(path, text);
    }
  }

  /** Runs the tests with these names and returns their results. */
  async run(files: readonly string[], names: readonly string[], msMax = RUN_MS_MAX): Promise<Result[]> {
    const report = join(this.#root, "report.json");
    rmSync(report, { force: true });
    const pattern = `(${names.map((n) => n.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")})$`;
    const vitest = ["node_modules/vitest/vitest.mjs", "run", "--reporter=json"];
    await this.#node([...vitest, `--outputFile=${report}`, "-t", pattern, ...files], msMax);
    return resultsOf(report);
  }

  #node(args: readonly string[], msMax: number): Promise<void> {
    // Properties try the same in every run, and enough for what happens seldom: whether a mutant dies must not be a
    // matter of luck.
    const chances = { SLUICE_PROPERTY_SEED: "1", SLUICE_PROPERTY_RUNS: "400" };
    const env = { ...process.env, DATABASE_URL: this.#url, ...chances };
    const child = spawn(process.execPath, args, {
      cwd: this.#root,
      env,
      stdio: "ignore",
      detached: true,
    });
    // All of its group: vitest has processes of its own.
    const late = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), msMax);
    return new Promise((resolve) =>
      child.on("exit", () => {
        clearTimeout(late);
        resolve();
      }),
    );
  }
}

/** A file that does not load has no results, and so no test that could have died in it. */
function resultsOf(report: string): Result[] {
  try {
    const told = JSON.parse(readFileSync(report, "utf8")) as {
      testResults: { assertionResults: Result[] }[];
    };
    return told.testResults.flatMap((file) => file.assertionResults);
  } catch {
    return [];
  }
}

function verdict(result: Result | undefined, { dies }: Mutant): string | null {
  if (result === undefined) return "its test did not load, or did not end in time";
  if (result.status !== "failed") return `survived: its test has ${result.status}`;
  const said = result.failureMessages.join("\n");
  return dies.test(said) ? null : `failed for another reason: ${short(said)}`;
}

/** Without the long list of who was scheduled when. */
function short(said: string): string {
  const lines = said.split("\n").filter((line) => !line.startsWith("->") && !line.startsWith("Counter"));
  return lines.slice(0, 12).join("\n");
}
