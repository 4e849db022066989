import type { ChildProcess } from "node:child_process";
import { closeSync, openSync, readlinkSync, realpathSync, rmSync, statSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { SluiceError } from "../core/error.js";
import { pgdataOf } from "./cluster.js";
import { hasCode, readText } from "./files.js";
import { ps, startedAt } from "./living.js";
import type { Site } from "./site.js";
import { spawnFailure, spawnOn, type Command } from "./spawn.js";
import { until } from "./until.js";

const attemptsMax = 5;
const readyWithinMs = 60_000;
const logBytesMax = 10_000_000;
// Causes that pass: another process took the port between our check and the bind; the last children of a killed server
// still run; or that server itself has ended but its parent has not reaped it yet.
const passing =
  /Address already in use|could not create any TCP\/IP sockets|shared memory block|lock file "postmaster.pid" already exists/;
// SIGINT ends sessions and writes a checkpoint; SIGQUIT leaves the rest to recovery.
const escalation = [
  { signal: "SIGINT", withinMs: 20_000 },
  { signal: "SIGQUIT", withinMs: 5_000 },
  { signal: "SIGKILL", withinMs: 5_000 },
] as const;

/** A running server, as described by its postmaster.pid. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly ready: boolean;
  readonly stopping: boolean;
}

/** The server that runs on this data directory, whichever process started it; undefined if there is none. */
export function findPostmaster(pgdata: string): Postmaster | undefined {
  const lines = readText(join(pgdata, "postmaster.pid"))?.split("\n");
  const pid = Number(lines?.[0]);
  if (lines === undefined || !(pid > 0) || !runsOn(pid, pgdata)) return undefined;
  const status = lines[7]?.trim();
  const port = Number(lines[3]);
  return { pid, port, ready: status === "ready", stopping: status === "stopping" };
}

/** After a crash the file stays behind, and its pid may belong to any process by now. */
function runsOn(pid: number, pgdata: string): boolean {
  if (startedAt(pid) === undefined) return false;
  if (process.platform === "linux") return worksIn(pid, pgdata);
  if (process.platform === "darwin") return ps(pid, "args=")?.includes(pgdata) ?? false;
  return true;
}

function worksIn(pid: number, pgdata: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(pgdata);
  } catch {
    return false; // It ended, or it belongs to another user: not ours in either case.
  }
}

export interface ServerOptions {
  readonly port?: number | undefined;
  readonly settings?: Readonly<Record<string, string>> | undefined;
}

/** Starts the server of a root and waits until it accepts connections. */
export async function launch(site: Site, root: string, options: ServerOptions): Promise<Postmaster> {
  const command = { ...site, pgdata: pgdataOf(root) };
  forgetStranger(command.pgdata);
  for (let attempt = 1; ; attempt += 1) {
    const started = await launchOnce(command, root, options);
    if (typeof started !== "string") return started;
    if (attempt === attemptsMax || !passing.test(started)) {
      throw new SluiceError("embedded_failed", `PostgreSQL did not start in ${root}:\n${started}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100 * attempt));
  }
}

/**
 * PostgreSQL refuses to start while the pid in its old file belongs to a live process, even an unrelated one. If the
 * pid is dead, PostgreSQL has better checks than we do, so the file stays.
 */
function forgetStranger(pgdata: string): void {
  const file = join(pgdata, "postmaster.pid");
  const pid = Number.parseInt(readText(file) ?? "", 10);
  if (pid > 0 && startedAt(pid) !== undefined) rmSync(file, { force: true });
}

async function launchOnce(command: Command, root: string, options: ServerOptions): Promise<Postmaster | string> {
  const port = options.port ?? (await freePort());
  const path = join(root, "postgres.log");
  const grown = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > logBytesMax;
  const log = openSync(path, grown ? "w" : "a", 0o600);
  const from = grown ? 0 : statSync(path).size;
  try {
    const child = spawnOn(command, "postgres", settingArgs(port, options), ["ignore", log, log]);
    child.unref();
    const ready = await becomesReady(child, command);
    return ready ?? (readText(path)?.slice(from).trim().split("\n").slice(-20).join("\n") || "no reason given");
  } finally {
    closeSync(log);
  }
}

function settingArgs(port: number, { settings }: ServerOptions): string[] {
  const all: Record<string, string> = {
    unix_socket_directories: "",
    max_connections: "200",
    shared_buffers: "128MB",
    timezone: "UTC",
    log_timezone: "UTC",
    ...settings,
    listen_addresses: "127.0.0.1",
    port: String(port),
  };
  return Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

async function becomesReady(child: ChildProcess, command: Command): Promise<Postmaster | undefined> {
  let failure: unknown;
  child.once("error", (cause) => (failure = spawnFailure(command, "postgres", cause)));
  const outcome = await until(readyWithinMs, () => {
    if (failure !== undefined || child.exitCode !== null || child.signalCode !== null) return "ended";
    const found = findPostmaster(command.pgdata);
    return found?.ready === true && found.pid === child.pid ? found : undefined;
  });
  if (failure !== undefined) throw failure;
  if (outcome === undefined) child.kill("SIGQUIT");
  return outcome === "ended" ? undefined : outcome;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", resolve);
  });
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** Stops the server of a data directory, if one is running, and returns once it is gone. */
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

/** Windows has no signals: process.kill would end the server the hardest way at once. */
function windowsStop(command: Command): void {
  const child = spawnOn(command, "pg_ctl", ["stop", "-m", "fast"], "ignore");
  child.once("error", () => {}); // If this fails, the next, harder way follows.
  child.unref();
}

export function signalServer(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}
