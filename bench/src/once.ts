import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { flagsOf } from "./flags.js";
import type { Enqueued, EnqueueSpec, Refusal } from "./process/messages.js";

/** Not a failure: the subject has no way to do this. */
export class CannotError extends Error {}

/** Runs a process that enqueues, says how long it took, and ends. */
export function enqueueIn(spec: EnqueueSpec, profile: string | null = null): Promise<Enqueued> {
  const path = fileURLToPath(new URL("./process/enqueue.js", import.meta.url));
  const execArgv = flagsOf(profile);
  const child = fork(path, [JSON.stringify(spec)], { execArgv, stdio: ["ignore", 2, 2, "ipc"] });
  let answer: (Enqueued & Refusal) | undefined;
  child.once("message", (message) => (answer = message as Enqueued & Refusal));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => {
      if (answer?.cannot !== undefined) reject(new CannotError(answer.cannot));
      else if (answer?.failed !== undefined) reject(new Error(answer.failed));
      else if (answer !== undefined) resolve(answer);
      else reject(new Error(`the enqueueing process ended with ${code} and without a reply`));
    });
  });
}
