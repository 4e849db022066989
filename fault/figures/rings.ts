// What an enqueue costs the server while many workers sleep: NOTIFY signals every backend that listens.
import pg from "pg";
import { startEmbedded } from "../../src/embedded/index.js";
import { Sluice, task } from "../../src/index.js";
import { ServerCpu } from "./cpu.js";
import type { Figure } from "./figure.js";

const RATIO_MAX = 1.5;
const FLEETS = [1, 150] as const;
const SINGLE_ENQUEUES = 300;
const BURSTS = 15;
const BURST_ENQUEUES = 20;
const LEASE_MS = 3_600_000;
const job = task("job");

interface RingCost {
  readonly workers: number;
  readonly listeners: number;
  /** CPU time of the server per enqueue, its claim and its settle included. */
  readonly singleMs: number;
  readonly burstMs: number;
  /** From the call of enqueue until the task is claimed and settled. */
  readonly latencyMs: number;
}

/**
 * An idle worker with one connection of its own: registered, asleep, and listening if it is on call. When it is rung it
 * claims and settles over a pool that all of them share.
 */
class SleepingWorker {
  readonly #client: pg.Client;
  readonly #pool: pg.Pool;
  #id = "";
  listens = false;

  constructor(url: string, pool: pg.Pool, onSettled: (tasks: number) => void) {
    this.#pool = pool;
    this.#client = new pg.Client(url);
    this.#client.on("notification", ({ payload = "" }) => {
      const [word, id, tasks] = payload.split(":");
      if (word === "wake" && id === this.#id) void this.claim(Number(tasks)).then(onSettled);
    });
  }

  async start(stream: number): Promise<void> {
    await this.#client.connect();
    const { rows } = await this.#client.query<{ id: string; on_call: boolean }>(
      `select r.id::text as id, sluice.is_on_call(r.id) as on_call
      from sluice.register('sleeper', array[$1::int], $2, 1000) r(id)`,
      [stream, LEASE_MS],
    );
    this.#id = rows[0]!.id;
    this.listens = rows[0]!.on_call;
    if (this.listens) await this.#client.query("listen sluice");
    await this.#client.query("update sluice.worker set asleep = true where id = $1", [this.#id]);
  }

  /** Claims and settles so many; says how many there were. */
  async claim(tasks: number): Promise<number> {
    const { rows } = await this.#pool.query<{ id: string | null }>({
      name: "claim",
      text: "select id::text from sluice.step($1, 1, (select streams from sluice.worker where id = $1), $2)",
      values: [this.#id, tasks],
    });
    const ids = rows.flatMap(({ id }) => id ?? []);
    if (ids.length > 0)
      await this.#pool.query({
        name: "settle",
        text: "select from sluice.step($1, 1, '{}', 0, $2, array_fill(1::bigint, array[$3::int]), $4)",
        values: [this.#id, ids, ids.length, ids.map(() => "null").join("\u001e")],
      });
    return ids.length;
  }

  async stop(): Promise<void> {
    await this.#client.end();
  }
}

/** Counts tasks as they are settled. */
class Tally {
  #settled = 0;
  #wanted = 0;
  #tell = (): void => {};

  add(tasks: number): void {
    this.#settled += tasks;
    if (this.#settled >= this.#wanted) this.#tell();
  }

  /** Resolves when so many more than were wanted before are settled. */
  async more(tasks: number): Promise<void> {
    this.#wanted += tasks;
    if (this.#settled < this.#wanted) await new Promise<void>((resolve) => (this.#tell = resolve));
  }
}

async function costOf(workers: number): Promise<RingCost> {
  const settings = { max_connections: "400", autovacuum: "off" };
  const server = await startEmbedded({ settings });
  const sluice = await Sluice.connect({ url: server.url, listen: false });
  const pool = new pg.Pool({ connectionString: server.url, max: 4 });
  // A poll may be under way when the server stops.
  pool.on("error", () => {});
  const tally = new Tally();
  const onSettled = (tasks: number): void => tally.add(tasks);
  const fleet = Array.from({ length: workers }, () => new SleepingWorker(server.url, pool, onSettled));
  let poll: NodeJS.Timeout | undefined;
  try {
    await sluice.sync([job]);
    const { rows } = await pool.query<{ id: number }>("select id from sluice.stream");
    for (const one of fleet) await one.start(rows[0]!.id);
    // As every sleeper does, for what a claim had passed over because another had it in hand.
    poll = setInterval(() => void fleet[0]!.claim(BURST_ENQUEUES).then(onSettled), 1_000);
    const cpu = await ServerCpu.of(server.url);
    const single = async (): Promise<void> => {
      await sluice.enqueue(job);
      await tally.more(1);
    };
    const burst = async (): Promise<void> => {
      await Promise.all(Array.from({ length: BURST_ENQUEUES }, () => sluice.enqueue(job)));
      await tally.more(BURST_ENQUEUES);
    };
    await burst();
    for (let i = 0; i < BURST_ENQUEUES; i++) await single();
    const before = cpu.ms;
    const beganMs = performance.now();
    for (let i = 0; i < SINGLE_ENQUEUES; i++) await single();
    const latencyMs = (performance.now() - beganMs) / SINGLE_ENQUEUES;
    const between = cpu.ms;
    for (let i = 0; i < BURSTS; i++) await burst();
    const after = cpu.ms;
    return {
      workers,
      listeners: fleet.filter(({ listens }) => listens).length,
      singleMs: (between - before) / SINGLE_ENQUEUES,
      burstMs: (after - between) / (BURSTS * BURST_ENQUEUES),
      latencyMs,
    };
  } finally {
    clearInterval(poll);
    await Promise.all(fleet.map((one) => one.stop()));
    await pool.end();
    await sluice.close();
    await server.stop();
  }
}

const told = ({ workers, listeners, singleMs, burstMs, latencyMs }: RingCost): string =>
  `${workers} idle ${workers === 1 ? "worker" : "workers"} (${listeners} on call): ${singleMs.toFixed(2)} ms of CPU ` +
  `per single enqueue, ${burstMs.toFixed(2)} ms in bursts of ${BURST_ENQUEUES}; ${latencyMs.toFixed(1)} ms until ` +
  `the task has ended`;

export const ringFigures: readonly Figure[] = [
  {
    name: "rings",
    target: `the server's CPU per enqueue beside ${FLEETS[1]} idle workers: at most ${RATIO_MAX}x that beside one`,
    measure: async (tell) => {
      const costs: RingCost[] = [];
      for (const workers of FLEETS) {
        costs.push(await costOf(workers));
        tell(told(costs.at(-1)!));
      }
      const [one, many] = costs as [RingCost, RingCost];
      const ratios = [many.singleMs / one.singleMs, many.burstMs / one.burstMs];
      return {
        ok: ratios.every((ratio) => ratio <= RATIO_MAX),
        seen: `${ratios.map((ratio) => `${ratio.toFixed(2)}x`).join(" and ")}: ${costs.map(told).join("; ")}`,
        command: "npm run figures -- rings",
      };
    },
  },
];
