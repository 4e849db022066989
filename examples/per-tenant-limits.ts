import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { Sluice, limit, task, type } from "../src/index.js";

// One tenant floods the queue. Each tenant has at most 2 exports at once, and all of them together
// 4, across all workers: the flood waits behind its own limit, and the others walk past it.
const tenant = limit("tenant", { perKey: 2, total: 4 });
const exportData = task("export-data", {
  input: type<{ tenant: string; page: number }>(),
  limits: [{ limit: tenant, key: (job) => job.tenant }],
});

const running = new Map<string, number>();
const finished: string[] = [];
let [mostOfOne, mostOfAll] = [0, 0];
const crowd = new EventEmitter();
const full = once(crowd, "full");

/** Counts, where the work is done, how many run at this moment. */
function begin(tenant: string): void {
  running.set(tenant, (running.get(tenant) ?? 0) + 1);
  const all = [...running.values()].reduce((sum, n) => sum + n, 0);
  mostOfOne = Math.max(mostOfOne, running.get(tenant)!);
  mostOfAll = Math.max(mostOfAll, all);
  if (all === 4) crowd.emit("full");
}

function end(tenant: string): void {
  running.set(tenant, running.get(tenant)! - 1);
  finished.push(tenant);
}

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
const pages = (name: string, length: number) =>
  Array.from({ length }, (_, page) => ({ tenant: name, page }));
const jobs = [...pages("flood", 60), ...pages("small", 4), ...pages("tiny", 4)];
const many = await sluice.enqueueMany(exportData, jobs);

const worker = sluice.worker({
  handlers: [
    exportData.handle(async (job) => {
      begin(job.tenant);
      // The first ones stay until as many are here as may be, so that the limit is really reached.
      await full;
      await setTimeout(10);
      end(job.tenant);
    }),
  ],
});
await worker.start();
await Promise.all(many.ids().map((id) => sluice.task(id).result({ timeoutMs: 20_000 })));
await sluice.close();

const last = Math.max(finished.lastIndexOf("small"), finished.lastIndexOf("tiny"));
const flooded = finished.slice(0, last).filter((name) => name === "flood").length;
const early = flooded < 30;
console.log(`at most ${mostOfOne} at once for one tenant, ${mostOfAll} for all`);
console.log(`small and tiny finished ${early ? "before" : "after"} half of the flood`);

assert.deepEqual([mostOfOne, mostOfAll], [2, 4]);
assert.ok(early, `${flooded} of the flood's 60 ran before the last task of the others`);
assert.equal(finished.length, 68);
