// CPU time of a PostgreSQL server, by the kernel's account of its processes.
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";

/** CPU time of a process so far in milliseconds, 0 if it has ended. The kernel counts it in nanoseconds. */
function cpuMs(pid: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } catch {
    return 0;
  }
}

function parentOf(pid: string): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]!;
  } catch {
    return "";
  }
}

/** CPU time of a server: of its postmaster and of all backends that live. */
export class ServerCpu {
  readonly #postmaster: string;

  private constructor(postmaster: string) {
    this.#postmaster = postmaster;
  }

  static async of(url: string): Promise<ServerCpu> {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const postmaster = parentOf(String(rows[0]!.pid));
    await client.end();
    return new ServerCpu(postmaster);
  }

  get ms(): number {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const backends = pids.filter((pid) => parentOf(pid) === this.#postmaster);
    return [this.#postmaster, ...backends].reduce((sum, pid) => sum + cpuMs(pid), 0);
  }
}
