// What a server of the bench's own needs, whichever it is: an ordinary user, a port, a log, a beginning and an end.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";

export interface Identity {
  readonly uid?: number;
  readonly gid?: number;
}

/** An ordinary user where we are root: PostgreSQL refuses to run as root, and nothing of the bench needs it. */
export function identity(): Identity {
  if (process.getuid?.() !== 0) return {};
  const name = ["postgres", "nobody"].find((user) => idOf(user, "-u") !== null);
  if (name === undefined) throw new Error("root needs a user postgres or nobody to run servers");
  return { uid: idOf(name, "-u")!, gid: idOf(name, "-g")! };
}

function idOf(user: string, flag: "-u" | "-g"): number | null {
  try {
    return Number(execFileSync("id", [flag, user], { stdio: ["ignore", "pipe", "ignore"] }));
  } catch {
    return null;
  }
}

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** Starts it in its folder, where what it says goes into `log`. */
export function launch(program: string, args: readonly string[], folder: string, who: Identity): ChildProcess {
  const log = openSync(join(folder, "log"), "a");
  try {
    return spawn(program, args, {
      ...who,
      cwd: folder,
      stdio: ["ignore", log, log],
      // Ctrl-C must reach it through stop(), after the workers are gone.
      detached: true,
    });
  } finally {
    closeSync(log);
  }
}

const READY_MS_MAX = 30_000;
const TRY_EVERY_MS = 50;

/** Resolves when `greet` does; with what the server has said, if it ends first or takes too long. */
export async function ready(
  name: string,
  server: ChildProcess,
  folder: string,
  greet: () => Promise<unknown>,
): Promise<void> {
  const until = Date.now() + READY_MS_MAX;
  for (;;) {
    try {
      await greet();
      return;
    } catch (e) {
      if (server.exitCode !== null || Date.now() > until) {
        const said = readFileSync(join(folder, "log"), "utf8");
        throw new Error(`${name} did not start:\n${said}`, { cause: e });
      }
      await new Promise((resolve) => setTimeout(resolve, TRY_EVERY_MS));
    }
  }
}

/** Ends it at once: its data is thrown away. */
export async function halt(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const gone = new Promise((resolve) => server.once("exit", resolve));
  server.kill(signal);
  await gone;
}
