// Processes a backlog and prints how much memory that took, without garbage.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setTimeout as delay } from "node:timers/promises";
import { Sluice } from "../../../src/index.js";
import { contractOf, type WorkerConfig } from "./work.js";

const config = JSON.parse(process.env["FLEET_CONFIG"] ?? "{}") as WorkerConfig;
setFlagsFromString("--expose_gc");
const collect = runInNewContext("gc") as () => void;
const samples: number[] = [];
let inFlight = 0;
let inFlightMax = 0;
let done = 0;

function sample(): void {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  samples.push(heapUsed + external);
}

const sluice = await Sluice.connect({ url: config.url, migrate: false });
const handler = contractOf(config.types[0]!).handle(async (work) => {
  inFlightMax = Math.max(inFlightMax, ++inFlight);
  await delay(work.ms);
  inFlight--;
  if (++done % 1_000 === 0) sample();
  if (done === 10_000) process.stdout.write(`memory ${JSON.stringify({ samples, inFlightMax })}\n`);
  return { by: config.name };
});
const worker = sluice.worker({ handlers: [handler], ...config.worker });

process.once("SIGTERM", () => {
  void (async () => {
    await worker.stop();
    await sluice.close();
  })();
});
await worker.start();
process.stdout.write("ready\n");
