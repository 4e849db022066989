// A gigabyte of queued payloads, worked off by a worker whose heap has 256 MB.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startEmbedded } from "../../src/embedded/index.js";
import { Sluice } from "../../src/index.js";
import { heavy } from "./heavy.js";

const HEAP_MB = 256;
const TASKS = 1_100;
const PAYLOAD_BYTES = 1_000_000;

export interface PayloadFigures {
  readonly gigabytes: number;
  readonly heapMb: number;
  readonly tasks: number;
  /** Those that succeeded. */
  readonly done: number;
  readonly rssMbMax: number;
  readonly inFlightMax: number;
}

export async function payloadFigures(tell: (line: string) => void): Promise<PayloadFigures> {
  const server = await startEmbedded({ settings: { fsync: "off", max_wal_size: "4GB" } });
  const sluice = await Sluice.connect({ url: server.url });
  try {
    tell(`enqueueing ${TASKS} tasks of ${PAYLOAD_BYTES} bytes`);
    const text = "x".repeat(PAYLOAD_BYTES);
    for (let i = 0; i < TASKS; i++) await sluice.enqueue(heavy, { text });
    tell(`a worker with ${HEAP_MB} MB of heap`);
    const { rssMbMax, inFlightMax } = await drain(server.url);
    const { succeeded } = await sluice.counts();
    const gigabytes = Math.round((TASKS * PAYLOAD_BYTES) / 1e7) / 100;
    return { gigabytes, heapMb: HEAP_MB, tasks: TASKS, done: succeeded, rssMbMax, inFlightMax };
  } finally {
    await sluice.close();
    await server.stop();
  }
}

/** Runs the worker until nothing is left, and returns what it says at its end. */
function drain(url: string): Promise<{ rssMbMax: number; inFlightMax: number }> {
  const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const program = fileURLToPath(new URL("heavy-worker.ts", import.meta.url));
  const flags = [`--max-old-space-size=${HEAP_MB}`, "--import", loader];
  const child = spawn(process.execPath, [...flags, program], {
    env: { ...process.env, DATABASE_URL: url, HEAVY_TASKS: String(TASKS) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) resolve(JSON.parse(said) as { rssMbMax: number; inFlightMax: number });
      else reject(new Error(`the worker ended with ${code ?? signal}: ${said}`));
    });
  });
}
