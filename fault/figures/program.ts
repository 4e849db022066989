// A program of this folder in a process of its own.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

interface Call {
  readonly flags?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Exit codes that are answers. */
  readonly codes?: readonly number[];
}

/** Runs a TypeScript file to its end and returns the last line it printed, which is JSON. */
export function lastLineOf<T>(file: string, call: Call = {}): Promise<T> {
  const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const program = fileURLToPath(new URL(file, import.meta.url));
  const { flags = [], args = [], env = {}, codes = [0] } = call;
  const child = spawn(process.execPath, [...flags, "--import", loader, program, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code !== null && codes.includes(code)) resolve(JSON.parse(said.trimEnd().split("\n").at(-1) ?? "") as T);
      else reject(new Error(`${file} ended with ${code ?? signal}`));
    });
  });
}
