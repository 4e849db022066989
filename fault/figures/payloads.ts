// A gigabyte of queued payloads, worked off by a worker whose heap has 256 MB.
import { startEmbedded } from "../../src/embedded/index.js";
import { Sluice } from "../../src/index.js";
import { heavy } from "./heavy.js";
import { lastLineOf } from "./program.js";

const HEAP_MB = 256;
const TASKS = 1_100;
const PAYLOAD_BYTES = 1_000_000;

/** What the worker says at its end. */
interface Memory {
  readonly rssMbMax: number;
  readonly inFlightMax: number;
}

export interface PayloadFigures extends Memory {
  readonly gigabytes: number;
  readonly heapMb: number;
  readonly tasks: number;
  /** Those that succeeded. */
  readonly done: number;
}

export async function payloadFigures(tell: (line: string) => void): Promise<PayloadFigures> {
  const server = await startEmbedded({ settings: { fsync: "off", max_wal_size: "4GB" } });
  const sluice = await Sluice.connect({ url: server.url });
  try {
    tell(`enqueueing ${TASKS} tasks of ${PAYLOAD_BYTES} bytes`);
    const text = "x".repeat(PAYLOAD_BYTES);
    for (let i = 0; i < TASKS; i++) await sluice.enqueue(heavy, { text });
    tell(`a worker with ${HEAP_MB} MB of heap`);
    const { rssMbMax, inFlightMax } = await lastLineOf<Memory>("heavy-worker.ts", {
      flags: [`--max-old-space-size=${HEAP_MB}`],
      env: { DATABASE_URL: server.url, HEAVY_TASKS: String(TASKS) },
    });
    const { succeeded } = await sluice.counts();
    const gigabytes = Math.round((TASKS * PAYLOAD_BYTES) / 1e7) / 100;
    return { gigabytes, heapMb: HEAP_MB, tasks: TASKS, done: succeeded, rssMbMax, inFlightMax };
  } finally {
    await sluice.close();
    await server.stop();
  }
}
