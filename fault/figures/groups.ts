// What limits.list() and a scrape cost with as many groups as there are customers, and how they are forgotten.
import pg from "pg";
import { startEmbedded } from "../../src/embedded/index.js";
import { Sluice, task } from "../../src/index.js";
import { ServerCpu } from "./cpu.js";
import type { Figure } from "./figure.js";

const COUNTS = [1_000, 200_000] as const;
const LIST_MS_MAX = 20;
const SCRAPE_MS_MAX = 50;
const HEAP_MB_MAX = 10;
const ROUNDS = 20;
// A look at slots is a second old at most.
const LOOK_MS = 1_100;
const PIECE = 500;

interface GroupsCost {
  readonly groups: number;
  readonly listMs: number;
  readonly scrapeMs: number;
  readonly scrapeCpuMs: number;
  readonly scrapeBytes: number;
  readonly heapMb: number;
  readonly forgetCpuMs: number;
}

async function costOf(groups: number): Promise<GroupsCost> {
  const server = await startEmbedded();
  const sluice = await Sluice.connect({ url: server.url });
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    const worker = sluice.worker({ handlers: [task("job").handle(() => {})] });
    await worker.start();
    await client.query(
      `select sluice.declare_limit('customer-' || n, 3, null, p_transient => true) from generate_series(1, $1::int) n`,
      [groups],
    );
    await client.query("vacuum analyze");
    const cpu = await ServerCpu.of(server.url);
    const heap = process.memoryUsage().heapUsed;
    const listMs = await median(ROUNDS, () => sluice.limits.list());
    const scrapes: number[] = [];
    let scrapeBytes = 0;
    const before = cpu.ms;
    for (let i = 0; i < ROUNDS / 4; i++) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      scrapes.push(await median(1, async () => (scrapeBytes = (await worker.metrics()).length)));
    }
    const scrapeCpuMs = (cpu.ms - before) / scrapes.length;
    const heapMb = (process.memoryUsage().heapUsed - heap) / 2 ** 20;
    await client.query("update sluice.limits set unused_since = '-infinity'");
    const began = cpu.ms;
    let pieces = 0;
    for (let after = 0, first = true; first || after > 0; first = false, pieces++) {
      const { rows } = await client.query<{ after: number }>(
        "select after from sluice.forget_limits($1, $2, 3600000)",
        [after, PIECE],
      );
      after = rows[0]!.after;
    }
    const forgetCpuMs = (cpu.ms - began) / pieces;
    return {
      groups,
      listMs,
      scrapeMs: middle(scrapes),
      scrapeCpuMs,
      scrapeBytes,
      heapMb,
      forgetCpuMs,
    };
  } finally {
    await client.end();
    await sluice.close();
    await server.stop();
  }
}

async function median(times: number, work: () => Promise<unknown>): Promise<number> {
  const all: number[] = [];
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    await work();
    all.push(performance.now() - began);
  }
  return middle(all);
}

function middle(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
}

const told = (c: GroupsCost): string =>
  `${c.groups} groups: limits.list() ${c.listMs.toFixed(1)} ms, a scrape ${c.scrapeMs.toFixed(1)} ms of ` +
  `${(c.scrapeBytes / 1_024).toFixed(0)} KB (${c.scrapeCpuMs.toFixed(1)} ms of the server's CPU with a second of an ` +
  `idle worker), ${c.heapMb.toFixed(1)} MB of heap more; ${c.forgetCpuMs.toFixed(1)} ms to forget ${PIECE}`;

export const groupFigures: readonly Figure[] = [
  {
    name: "groups",
    target:
      `with ${COUNTS[1]} groups: a page of limits.list() within ${LIST_MS_MAX} ms, ` +
      `a scrape within ${SCRAPE_MS_MAX} ms, at most ${HEAP_MB_MAX} MB of heap`,
    measure: async (tell) => {
      const costs: GroupsCost[] = [];
      for (const groups of COUNTS) {
        costs.push(await costOf(groups));
        tell(told(costs.at(-1)!));
      }
      const { listMs, scrapeMs, heapMb } = costs.at(-1)!;
      return {
        ok: listMs <= LIST_MS_MAX && scrapeMs <= SCRAPE_MS_MAX && heapMb <= HEAP_MB_MAX,
        seen: costs.map(told).join("; "),
        command: "npm run figures -- groups",
      };
    },
  },
];
