// What workers with nothing to do cost: statements, and CPU of their processes and of the server.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import pg from "pg";
import { startEmbedded } from "../../src/embedded/index.js";
import type { Figure } from "./figure.js";

const STATEMENTS_MAX = 2;
const CPU_PERCENT_MAX = 0.5;
/** One worker, which has all duties, and some that share them. */
const FLEETS = [1, 4] as const;
/** The smallest allowed: it must not matter while LISTEN works. */
const POLL_MS = 10;
// A process collects the garbage of its start for a while.
const SETTLE_MS = 75_000;
const MEASURE_MS = 60_000;
// Linux counts CPU time in ticks of 10 ms on every architecture that Node.js supports.
const TICK_MS = 10;

interface IdleCost {
  readonly workers: number;
  /** Each of these per worker. */
  readonly statementsPerSecond: number;
  readonly nodePercent: number;
  readonly serverPercent: number;
}

/** CPU time of a process so far, 0 if it has ended; and its parent. */
function processTime(pid: number): { ms: number; parent: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { ms: ticks * TICK_MS, parent: Number(fields[1]) };
  } catch {
    return { ms: 0, parent: 0 };
  }
}

/** CPU time of a process and of its children. */
function familyMs(pid: number): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const children = pids.map(Number).map(processTime);
  const sum = children.filter(({ parent }) => parent === pid).reduce((ms, child) => ms + child.ms, 0);
  return processTime(pid).ms + sum;
}

class IdleProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(url: string) {
    const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const program = fileURLToPath(new URL("idle-worker.ts", import.meta.url));
    this.#child = spawn(process.execPath, ["--import", loader, program], {
      env: { ...process.env, DATABASE_URL: url, IDLE_POLL_MS: String(POLL_MS) },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#lines = createInterface(this.#child.stdout!)[Symbol.asyncIterator]();
  }

  /** Resolves when its worker runs. */
  async started(): Promise<void> {
    await this.#lines.next();
  }

  /** How many statements it has sent so far. */
  async statements(): Promise<number> {
    this.#child.stdin!.write("\n");
    return Number((await this.#lines.next()).value);
  }

  get cpuMs(): number {
    return processTime(this.#child.pid!).ms;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "close");
    this.#child.stdin!.end();
    await ended;
  }
}

async function costOf(workers: number): Promise<IdleCost> {
  const server = await startEmbedded();
  const postmaster = await postmasterOf(server.url);
  const fleet = Array.from({ length: workers }, () => new IdleProcess(server.url));
  const look = async () => {
    const statements = await Promise.all(fleet.map((one) => one.statements()));
    const node = fleet.map(({ cpuMs }) => cpuMs);
    return {
      ms: performance.now(),
      statements: sum(statements),
      node: sum(node),
      server: familyMs(postmaster),
    };
  };
  try {
    await Promise.all(fleet.map((one) => one.started()));
    await wait(SETTLE_MS);
    const before = await look();
    await wait(MEASURE_MS);
    const after = await look();
    const share = workers * (after.ms - before.ms);
    return {
      workers,
      statementsPerSecond: (1_000 * (after.statements - before.statements)) / share,
      nodePercent: (100 * (after.node - before.node)) / share,
      serverPercent: (100 * (after.server - before.server)) / share,
    };
  } finally {
    await Promise.all(fleet.map((one) => one.stop()));
    await server.stop();
  }
}

async function postmasterOf(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const { parent } = processTime(rows[0]!.pid);
  await client.end();
  return parent;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const told = ({ workers, statementsPerSecond, nodePercent, serverPercent }: IdleCost): string =>
  `${workers} ${workers === 1 ? "worker" : "workers"}: ${statementsPerSecond.toFixed(2)} statements/s each, ` +
  `${nodePercent.toFixed(2)} % of a core in Node.js and ${serverPercent.toFixed(2)} % on the server`;

export const idleFigures: readonly Figure[] = [
  {
    name: "idle",
    target:
      `a worker with nothing to do that polls every ${POLL_MS} ms, with LISTEN: ` +
      `at most ${STATEMENTS_MAX} statements/s and ${CPU_PERCENT_MAX} % of a core`,
    measure: async (tell) => {
      const costs: IdleCost[] = [];
      for (const workers of FLEETS) {
        costs.push(await costOf(workers));
        tell(told(costs.at(-1)!));
      }
      const ok = costs.every(
        (cost) =>
          cost.statementsPerSecond <= STATEMENTS_MAX && cost.nodePercent + cost.serverPercent <= CPU_PERCENT_MAX,
      );
      return { ok, seen: costs.map(told).join("; "), command: "npm run figures -- idle" };
    },
  },
];
