import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { SluiceError } from "../core/error.js";
import type { Identity } from "./identity.js";

export interface Command {
  /** Directory of the PostgreSQL binaries. */
  readonly bin: string;
  readonly identity: Identity | undefined;
  readonly pgdata: string;
}

/** Starts a PostgreSQL binary on a data directory, as the identity. It inherits no variable that PostgreSQL reads. */
export function spawnOn(
  { bin, identity, pgdata }: Command,
  program: "initdb" | "postgres" | "pg_ctl",
  args: readonly string[],
  stdio: StdioOptions,
): ChildProcess {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(PG|LC_)/.test(key)));
  return spawn(executable(bin, program), ["-D", reachable(pgdata, identity), ...args], {
    ...identity,
    cwd: pgdata,
    detached: true,
    stdio,
    env: { ...env, LC_ALL: "C", TZ: "UTC" },
    windowsHide: true,
  });
}

function executable(bin: string, program: string): string {
  return join(bin, process.platform === "win32" ? `${program}.exe` : program);
}

/**
 * Root may keep its data where no other user can enter, such as below /root. The child changes into the directory
 * before it drops root, and from there this name works without access to the path.
 */
function reachable(pgdata: string, identity: Identity | undefined): string {
  return identity !== undefined && process.platform === "linux" ? "/proc/self/cwd" : pgdata;
}

/** The binary exists but its loader does not: a system without glibc. */
export function spawnFailure({ bin }: Command, program: string, cause: unknown): SluiceError {
  const foreign = (cause as NodeJS.ErrnoException).code === "ENOENT" && existsSync(executable(bin, program));
  return foreign
    ? new SluiceError(
        "embedded_unsupported",
        "The embedded PostgreSQL does not run on this system (it needs glibc). " +
          "Set DATABASE_URL to a PostgreSQL server of your own.",
        { cause },
      )
    : new SluiceError("embedded_failed", `Could not run ${program} from ${bin}`, { cause });
}
