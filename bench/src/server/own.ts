import { execFileSync, spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chownSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { SETTINGS, type Server } from "./settings.js";

export interface Identity {
  readonly uid?: number;
  readonly gid?: number;
}

const READY_MS_MAX = 30_000;

/** Starts an ordinary PostgreSQL in a temporary folder; stop() removes it. */
export async function startOwn(bin: string): Promise<Server> {
  const who = identity();
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const password = initialise(bin, folder, who);
    const port = await freePort();
    const server = launch(bin, folder, who, port);
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
    await ready(server, url, join(folder, "log"));
    const about = "an ordinary PostgreSQL of this machine";
    return { url, about, pid: server.pid!, stop: () => halt(server).finally(remove) };
  } catch (e) {
    remove();
    throw e;
  }
}

/** PostgreSQL refuses to run as root. */
export function identity(): Identity {
  if (process.getuid?.() !== 0) return {};
  const name = ["postgres", "nobody"].find((user) => idOf(user, "-u") !== null);
  if (name === undefined) throw new Error("root needs a user postgres or nobody to run PostgreSQL");
  return { uid: idOf(name, "-u")!, gid: idOf(name, "-g")! };
}

function idOf(user: string, flag: "-u" | "-g"): number | null {
  try {
    return Number(execFileSync("id", [flag, user], { stdio: ["ignore", "pipe", "ignore"] }));
  } catch {
    return null;
  }
}

function initialise(bin: string, folder: string, who: Identity): string {
  const password = randomBytes(16).toString("hex");
  const file = join(folder, "password");
  writeFileSync(file, password, { mode: 0o600 });
  if (who.uid !== undefined) for (const path of [folder, file]) chownSync(path, who.uid, who.gid!);
  const where = ["-D", join(folder, "data"), "--encoding=UTF8", "--locale=C", "--no-sync"];
  const access = ["-U", "postgres", "--auth=scram-sha-256", `--pwfile=${file}`];
  const stdio: StdioOptions = ["ignore", "ignore", "pipe"];
  execFileSync(join(bin, "initdb"), [...where, ...access], { ...who, cwd: folder, stdio });
  return password;
}

function launch(bin: string, folder: string, who: Identity, port: number): ChildProcess {
  const settings = {
    ...SETTINGS,
    port: String(port),
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    logging_collector: "off",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const log = openSync(join(folder, "log"), "a");
  try {
    return spawn(join(bin, "postgres"), ["-D", join(folder, "data"), ...args], {
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

async function ready(server: ChildProcess, url: string, log: string): Promise<void> {
  const until = Date.now() + READY_MS_MAX;
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      await client.end();
      return;
    } catch (e) {
      if (server.exitCode !== null || Date.now() > until) {
        throw new Error(`PostgreSQL did not start:\n${readFileSync(log, "utf8")}`, { cause: e });
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

async function halt(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const gone = new Promise((resolve) => server.once("exit", resolve));
  // Immediate: the data is thrown away.
  server.kill("SIGQUIT");
  await gone;
}

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
