import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { Sluice, task, tickTime, type } from "../src/index.js";

// A report every night at three in Berlin, summer and winter; and, so that there is something to see
// at once, one every second. Two workers run, and each tick is enqueued by exactly one of them.
const timeZone = "Europe/Berlin";
const report = task("sales-report", {
  // The time of the tick, not the time at which it happens to run: a late report is for the right day.
  input: type<{ shop: string; at: string }>(),
});

const ticks: string[] = [];
const seen = new EventEmitter();
const handler = report.handle(({ shop, at }) => {
  if (shop === "nightly") return;
  ticks.push(at);
  if (ticks.length >= 3) seen.emit("enough");
});

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
const workers = ["one", "two"].map((name) => sluice.worker({ name, handlers: [handler] }));
for (const worker of workers) await worker.start();

const nightly = () =>
  sluice.schedules.set("nightly-report", {
    cron: "0 3 * * *",
    timeZone,
    task: report,
    input: { shop: "nightly", at: tickTime },
  });
// Every process may say so whenever it starts: said again, it is the same schedule.
await nightly();
const { nextAt } = await nightly();
const clock = new Intl.DateTimeFormat("en-GB", { timeZone, timeStyle: "short" });
const next = nextAt === null ? "never" : clock.format(nextAt);
console.log(`nightly-report: next at ${next} in Berlin`);

// Not willing to wait for the night: one run now, which changes no tick.
const now = await sluice.schedules.trigger("nightly-report");
await now.result();
console.log("nightly-report: ran once by hand");

const enough = once(seen, "enough");
await sluice.schedules.set("report-each-second", {
  cron: "* * * * * *",
  task: report,
  input: { shop: "each-second", at: tickTime },
  missed: "all",
});
await enough;
await sluice.schedules.pause("report-each-second");
const { lastTaskId } = await sluice.schedules.get("report-each-second");
await sluice.task(lastTaskId!).result();
for (const name of ["nightly-report", "report-each-second"]) await sluice.schedules.remove(name);
await sluice.close();

const seconds = ticks.map((at) => Date.parse(at) / 1_000).toSorted((a, b) => a - b);
const first = seconds[0]!;
const exact = seconds.every((second, i) => second === first + i);
console.log(`report-each-second: ${exact ? "every tick ran exactly once" : ticks.join(" ")}`);
assert.equal(next, "03:00");
assert.ok(exact && Number.isInteger(first));
