import { SluiceError } from "../core/error.js";
import { hasCode } from "./files.js";
import { startedAt } from "./living.js";
import { findPostmaster } from "./postmaster.js";
import { spawnOn, type Command } from "./spawn.js";
import { until } from "./until.js";

// SIGINT ends sessions and writes a checkpoint; SIGQUIT leaves the rest to recovery.
const escalation = [
  { signal: "SIGINT", withinMs: 20_000 },
  { signal: "SIGQUIT", withinMs: 5_000 },
  { signal: "SIGKILL", withinMs: 5_000 },
] as const;

/** Stops the server of a data directory, if one runs, and returns once it is gone. */
export async function halt(command: Command): Promise<void> {
  const running = findPostmaster(command.pgdata);
  if (running === undefined) return;
  for (const { signal, withinMs } of escalation) {
    if (process.platform === "win32" && signal === "SIGINT") windowsStop(command);
    else signalServer(running.pid, signal);
    if (await until(withinMs, () => startedAt(running.pid) === undefined || undefined)) return;
  }
  throw new SluiceError("embedded_failed", `PostgreSQL ${running.pid} could not be stopped`);
}

/** Windows has no signals: there process.kill would be the hardest way at once. */
function windowsStop(command: Command): void {
  const child = spawnOn(command, "pg_ctl", ["stop", "-m", "fast"], "ignore");
  child.once("error", () => {}); // The next, harder, way follows if this one did not work.
  child.unref();
}

export function signalServer(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}
