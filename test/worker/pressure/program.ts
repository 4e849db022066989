// A worker in a process of its own, with little memory: FLEET_CONFIG says what it is to do.
import { writeFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Sluice, task, type } from "../../../src/index.js";

export interface ProgramConfig {
  readonly url: string;
  readonly tasks: number;
  /** How long a handler takes. */
  readonly workMs: number;
  /** Where to write our process id, to be put into a control group. */
  readonly procs?: string;
  /** Memory to take before the second half: on V8's heap, or outside of it. */
  readonly hog?: { readonly of: "heap" | "buffers"; readonly bytes: number };
}

export interface ProgramReport {
  readonly rssBefore: number;
  readonly rssMax: number;
  /** The most handlers that one claim started: in all, and while the memory was taken. */
  readonly gulpMax: number;
  readonly gulpMaxHogged: number;
  /** The reasons seen while the memory was taken, and the state after it was given back. */
  readonly reasonsHogged: readonly string[];
  readonly stateAfter: string;
}

const config = JSON.parse(process.env["FLEET_CONFIG"]!) as ProgramConfig;
if (config.procs !== undefined) writeFileSync(config.procs, String(process.pid));
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const job = task("job", { input: type<{ text: string }>() });
const sluice = await Sluice.connect({ url: config.url, migrate: false });
let [now, gulpMax, rssMax, length] = [0, 0, 0, 0];
const worker = sluice.worker({
  claimBatchSize: 50,
  handlers: [
    job.handle(async ({ text }) => {
      if (now++ === 0) queueMicrotask(() => (now = 0));
      gulpMax = Math.max(gulpMax, now);
      rssMax = Math.max(rssMax, process.memoryUsage.rss());
      await new Promise((resolve) => setTimeout(resolve, config.workMs));
      length += text.length;
    }),
  ],
});
const pause = (ms = 20): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function until(look: () => boolean): Promise<void> {
  while (!look()) await pause();
}

/** Takes memory until the worker feels it; its own part is at most what was said. */
async function take(hog: NonNullable<ProgramConfig["hog"]>): Promise<unknown[]> {
  const kept: unknown[] = [];
  const piece = 1024 * 1024;
  for (let taken = 0; taken < hog.bytes; taken += piece) {
    if (hog.of === "buffers") kept.push(Buffer.alloc(piece, 1));
    // Eight bytes each.
    else kept.push(Array.from({ length: piece / 8 }, (_, i) => i));
    // An idle worker measures twice a second.
    await pause(50);
    if (worker.status().pressure.reasons.includes("memory")) break;
  }
  return kept;
}

console.log("ready");
collect();
const rssBefore = process.memoryUsage.rss();
await worker.start();
// The first half has all the memory there is.
await until(() => worker.status().completed >= config.tasks / 2);
const gulpMaxFree = gulpMax;
const reasonsHogged = new Set<string>();
if (config.hog !== undefined) {
  await sluice.pause("default");
  await until(() => worker.status().permitsInUse === 0);
  const kept = await take(config.hog);
  gulpMax = 0;
  await sluice.resume("default");
  await until(() => {
    for (const reason of worker.status().pressure.reasons) reasonsHogged.add(reason);
    return worker.status().completed >= config.tasks * 0.75;
  });
  kept.length = 0;
  collect();
  await until(() => worker.status().pressure.state === "normal");
}
const gulpMaxHogged = gulpMax;
await until(() => worker.status().completed >= config.tasks);
const report: ProgramReport = {
  rssBefore,
  rssMax,
  gulpMax: gulpMaxFree,
  gulpMaxHogged,
  reasonsHogged: [...reasonsHogged],
  stateAfter: worker.status().pressure.state,
};
await sluice.close();
console.log(`report ${JSON.stringify(report)}`);
if (length === 0) throw new Error("no input arrived");
