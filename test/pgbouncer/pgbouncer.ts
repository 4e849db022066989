import { spawn, type ChildProcess } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { identityFor } from "../../src/embedded/identity.js";

/** A PgBouncer in front of one server. */
export interface Pooler {
  readonly port: number;
  /** The address of a database of the server, routed through this PgBouncer. */
  through(url: string): string;
  stop(): Promise<void>;
}

const documented = new URL("../../docs/operate/pgbouncer.ini", import.meta.url);
// Debian installs it outside the PATH of an ordinary user.
const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
const PORTS_MAX = 5;

/** The path of PgBouncer, if it is installed. */
export function findPgBouncer(): string | undefined {
  return folders.map((folder) => join(folder, "pgbouncer")).find((path) => existsSync(path));
}

/** Starts a PgBouncer for every database of the server, with the documented settings and these. */
export async function startPooler(
  serverUrl: string,
  { port: wanted, ...settings }: { port?: number; default_pool_size?: number } = {},
): Promise<Pooler> {
  const program = findPgBouncer();
  if (program === undefined) throw new Error("pgbouncer is not installed");
  for (let tries = 1; ; tries++) {
    const port = wanted ?? (await freePort());
    try {
      return await launch(program, port, { server: new URL(serverUrl), settings });
    } catch (e) {
      // Another process may have taken the port meanwhile.
      if (tries === PORTS_MAX) throw e;
    }
  }
}

interface Front {
  readonly server: URL;
  readonly settings: object;
}

async function launch(program: string, port: number, front: Front): Promise<Pooler> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-pgbouncer-"));
  const config = join(directory, "pgbouncer.ini");
  // PgBouncer refuses to run as root, and the user it runs as must be able to read this.
  chmodSync(directory, 0o755);
  writeFileSync(config, configOf(port, front));
  const child = spawn(program, [config], {
    ...identityFor(),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = new Promise<void>((resolve) => {
    child.once("error", () => resolve());
    child.once("close", () => resolve());
  }).finally(() => rmSync(directory, { recursive: true, force: true }));
  const kill = (): void => void child.kill("SIGTERM");
  process.once("exit", kill);
  await up(child, ended);
  return {
    port,
    through: (url) => {
      const way = new URL(url);
      way.host = `127.0.0.1:${port}`;
      return way.href;
    },
    stop: async () => {
      process.off("exit", kill);
      kill();
      await ended;
    },
  };
}

/** The documented file, then the settings that must differ here: the last line of a setting wins. */
function configOf(port: number, { server, settings }: Front): string {
  const user = decodeURIComponent(server.username);
  const password = decodeURIComponent(server.password);
  const own = { listen_port: port, unix_socket_dir: "", auth_type: "any", ...settings };
  return [
    readFileSync(documented, "utf8"),
    ...Object.entries(own).map(([name, value]) => `${name} = ${value}`),
    "[databases]",
    `* = host=${server.hostname} port=${server.port} user='${user}' password='${password}'`,
    "",
  ].join("\n");
}

async function up(child: ChildProcess, ended: Promise<void>): Promise<void> {
  let said = "";
  const ready = new Promise<void>((resolve) => {
    createInterface({ input: child.stderr! }).on("line", (line) => {
      said += `${line}\n`;
      if (line.includes("process up")) resolve();
    });
  });
  const over = ended.then(() => {
    throw new Error(`pgbouncer did not start. It said:\n${said}`);
  });
  await Promise.race([ready, over]);
  // Later output is read and dropped, and its exit is ignored.
  over.catch(() => {});
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
