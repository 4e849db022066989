// Worker processes: started, killed, stopped.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** What a worker process is told, through its environment. */
export interface WorkerOrders {
  readonly url: string;
  readonly schema: string;
  readonly logSchema: string;
}

export interface Member {
  readonly name: string;
  readonly pid: number;
  readonly alive: boolean;
}

const STOP_MS_MAX = 10_000;
const PROGRAM = fileURLToPath(new URL("./worker.ts", import.meta.url));

export class Fleet {
  readonly #orders: WorkerOrders;
  readonly #onSaid: (line: string) => void;
  readonly #children = new Map<string, ChildProcess>();

  /** onSaid hears what a worker writes to its standard error: nothing, if all is well. */
  constructor(orders: WorkerOrders, onSaid: (line: string) => void) {
    this.#orders = orders;
    this.#onSaid = onSaid;
  }

  get members(): Member[] {
    return [...this.#children].map(([name, child]) => ({
      name,
      pid: child.pid ?? 0,
      alive: isAlive(child),
    }));
  }

  /** Starts a worker; resolves when it claims. */
  async start(name: string): Promise<Member> {
    // PGAPPNAME: whoever looks at the server sees which connection is whose.
    const env = { ...process.env, PGAPPNAME: name, DEMO_WORKER: JSON.stringify(this.#orders) };
    const child = fork(PROGRAM, [name], { env, stdio: ["ignore", "ignore", "pipe", "ipc"] });
    this.#children.set(name, child);
    createInterface({ input: child.stderr! }).on("line", (line) =>
      this.#onSaid(`${name}: ${line}`),
    );
    const gone = once(child, "exit").then(() => {
      throw new Error(`${name} ended before it was ready`);
    });
    await Promise.race([once(child, "message"), gone]);
    gone.catch(() => {});
    return { name, pid: child.pid!, alive: true };
  }

  /** kill -9; resolves when the process is gone. */
  async kill(name: string): Promise<void> {
    const child = this.#children.get(name)!;
    if (!isAlive(child)) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Lets every worker finish what it has in hand. One that does not leave in time is killed. */
  async stop(): Promise<void> {
    const leave = async (child: ChildProcess): Promise<void> => {
      if (!isAlive(child)) return;
      const gone = once(child, "exit");
      child.disconnect();
      const late = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
      await gone;
      clearTimeout(late);
    };
    await Promise.all([...this.#children.values()].map(leave));
  }
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null && child.pid !== undefined;
}
