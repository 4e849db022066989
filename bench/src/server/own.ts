import { execFileSync, type StdioOptions } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort, halt, identity, launch, ready, type Identity } from "./child.js";
import { SETTINGS, type Server } from "./settings.js";

/** Starts an ordinary PostgreSQL in a temporary folder; stop() removes it. */
export async function startOwn(bin: string): Promise<Server> {
  const who = identity();
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const password = initialise(bin, folder, who);
    const port = await freePort();
    const server = launch(join(bin, "postgres"), argumentsOf(folder, port), folder, who);
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
    await ready("PostgreSQL", server, folder, () => greet(url));
    const about = "the PostgreSQL installed on this machine";
    return { url, about, pid: server.pid!, stop: () => halt(server, "SIGQUIT").finally(remove) };
  } catch (e) {
    remove();
    throw e;
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

function argumentsOf(folder: string, port: number): string[] {
  const settings = {
    ...SETTINGS,
    port: String(port),
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    logging_collector: "off",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return ["-D", join(folder, "data"), ...args];
}

async function greet(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.end();
}
