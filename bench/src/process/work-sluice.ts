import { setTimeout as sleep } from "node:timers/promises";
import { Sluice, type TaskHandler, type WorkerOptions } from "../../../src/index.js";
import { nowMs } from "../numbers.js";
import { kits, type Input, type KitName, type Piece } from "../tasks.js";
import { Counter } from "./counter.js";
import { serve, argument } from "./serve.js";

/** One process with one worker of ours. */
export interface SluiceSpec {
  readonly url: string;
  readonly kit: KitName;
  /** How many counted tasks all processes together will run. */
  readonly total: number;
  readonly keepHistory: boolean;
  readonly numbers: Omit<WorkerOptions, "handlers" | "name">;
}

const HANG_MS = 600_000;

const spec = argument() as SluiceSpec;
const counter = new Counter(spec.total);
const sluice = await Sluice.connect({
  url: spec.url,
  migrate: false,
  ...(spec.keepHistory ? {} : { history: { succeededMs: 0 } }),
});
const handlers = kits[spec.kit]().map(handlerOf);
const worker = sluice.worker({ ...spec.numbers, handlers });
serve({
  counter,
  claims: () => worker.status().claims,
  go: () => worker.start(),
  stop: async () => {
    await worker.stop({ graceMs: 0 });
    await sluice.close();
  },
});

function handlerOf({ contract, work, counted }: Piece): TaskHandler<Input, Input> {
  if (!counted) return contract.handle(work === "hang" ? () => sleep(HANG_MS) : async () => {});
  if (work === "nothing") {
    return contract.handle(async () => {
      counter.begin();
      counter.end();
    });
  }
  if (work === "latency") {
    return contract.handle(async ({ atMs }) => {
      counter.latency(nowMs() - atMs!);
      counter.begin();
      counter.end();
    });
  }
  return contract.handle(async () => {
    const beganMs = nowMs();
    counter.begin();
    await sleep(work === "hang" ? HANG_MS : work.sleepMs);
    counter.took(nowMs() - beganMs);
    counter.end();
  });
}
