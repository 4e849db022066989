import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What a process that does one thing answers. */
export interface Once {
  readonly ms: number;
}

/** Runs a process that does one thing, says how long it took, and ends. */
export function runOnce(
  file: "enqueue-sluice" | "enqueue-graphile",
  spec: object,
  profile: string | null,
): Promise<Once> {
  const path = fileURLToPath(new URL(`./process/${file}.js`, import.meta.url));
  const execArgv = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  const child = fork(path, [JSON.stringify(spec)], { execArgv, stdio: ["ignore", 2, 2, "ipc"] });
  let answer: Once | undefined;
  child.once("message", (message) => (answer = message as Once));
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => {
      if (answer !== undefined) resolve(answer);
      else reject(new Error(`${file} ended with ${code} and no answer`));
    });
  });
}
