// Works off all tasks with the defaults, and says how much memory that took.
import { Sluice } from "../../src/index.js";
import { heavy } from "./heavy.js";

const TASK_MS = 20;
const tasks = Number(process.env["HEAVY_TASKS"]);
let [done, inFlight, inFlightMax, rssMax] = [0, 0, 0, 0];
let finish!: () => void;
const finished = new Promise<void>((resolve) => (finish = resolve));

const sluice = await Sluice.connect();
const worker = sluice.worker({
  handlers: [
    heavy.handle(async ({ text }) => {
      inFlightMax = Math.max(inFlightMax, ++inFlight);
      rssMax = Math.max(rssMax, process.memoryUsage.rss());
      await new Promise((resolve) => setTimeout(resolve, TASK_MS));
      inFlight--;
      if (++done === tasks) finish();
      return text.length;
    }),
  ],
});
await worker.start();
await finished;
await sluice.close();
process.stdout.write(JSON.stringify({ rssMbMax: Math.round(rssMax / 2 ** 20), inFlightMax }));
