import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

export interface SpawnedTs {
  readonly child: ChildProcess;
  /** The first line printed, earlier or from now on, that satisfies the predicate. */
  line(predicate: (line: string) => boolean): Promise<string>;
  /** The exit code; null if a signal ended it. */
  readonly exit: Promise<number | null>;
  /** Sends the signal and waits for the end. */
  kill(signal?: NodeJS.Signals): Promise<number | null>;
}

const repository = fileURLToPath(new URL("../..", import.meta.url));
const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
const running = new Set<ChildProcess>();

// A failed test must not leave its processes behind.
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

interface Waiter {
  readonly predicate: (line: string) => boolean;
  readonly resolve: (line: string) => void;
  readonly reject: (error: Error) => void;
}

/** Runs a TypeScript file, named from the repository's root, in a process of its own. */
export function spawnTs(file: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): SpawnedTs {
  const preload = process.env.SLUICE_TEST_PRELOAD;
  // What is loaded first changes the source, not its translation.
  const translated = preload === undefined ? translationOf(file) : null;
  const imports = translated !== null ? [] : preload === undefined ? [loader] : [loader, preload];
  const flags = imports.flatMap((module) => ["--import", module]);
  const child = spawn(process.execPath, [...flags, translated ?? file, ...args], {
    cwd: repository,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const exit = new Promise<number | null>((resolve) => {
    child.once("error", (error) => (stderr += String(error)));
    child.once("close", (code) => resolve(code));
  }).finally(() => running.delete(child));
  const line = lineReader(child, () => `${file} ended first. It said:\n${stderr}`);
  const kill = (signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> => {
    child.kill(signal);
    return exit;
  };
  return { child, line, exit, kill };
}

/** Some are translated once for all tests, others as they run. */
function translationOf(file: string): string | null {
  const folder = process.env.SLUICE_TEST_JS;
  if (folder === undefined) return null;
  const translated = join(folder, file.replace(/\.ts$/, ".js"));
  return existsSync(translated) ? translated : null;
}

function lineReader(child: ChildProcess, complaint: () => string): SpawnedTs["line"] {
  const seen: string[] = [];
  const waiters = new Set<Waiter>();
  let closed = false;
  createInterface({ input: child.stdout! }).on("line", (text) => {
    seen.push(text);
    for (const waiter of waiters) {
      if (waiter.predicate(text) && waiters.delete(waiter)) waiter.resolve(text);
    }
  });
  child.once("close", () => {
    closed = true;
    for (const waiter of waiters) waiter.reject(new Error(complaint()));
  });
  return (predicate) =>
    new Promise((resolve, reject) => {
      const found = seen.find(predicate);
      if (found !== undefined) resolve(found);
      else if (closed) reject(new Error(complaint()));
      else waiters.add({ predicate, resolve, reject });
    });
}
