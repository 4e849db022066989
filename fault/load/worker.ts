// A worker process of the load. It is killed, frozen and cut off; what it saw is in the log.
import { Sluice, type Logger, type Worker } from "../../src/index.js";
import { LogWriter } from "../log.js";
import { handle } from "./handler.js";
import { endWithHarness, ordersText, Reporter, type ToProcess, type WorkerOrders } from "./orders.js";
import { counters } from "../scraper.js";
import { partHandlers } from "./part.js";
import { partNames } from "./parts.js";
import { patiently } from "./patiently.js";
import { contracts, LEASE_MS, typeNames } from "./terms.js";

const GRACE_MS = 5_000;
const NEWS_MS = 1_000;

const orders = JSON.parse(ordersText()) as WorkerOrders;
const served = typeNames.filter((name) => !orders.unserved.includes(name));
const reporter = new Reporter();
let [inHand, ended, logLines] = [0, 0, 0];
let worker: Worker | null = null;

const nothing = (): void => {};
const count = (message: string, fields?: object): void => {
  // Tasks of this load fail by the hundred, as they are told to: that is no trouble of the worker's.
  if (message.startsWith("a task failed")) return;
  reporter.tell({ logLines: ++logLines });
  process.stderr.write(`${JSON.stringify({ message, ...fields })}\n`);
};
const logger: Logger = { debug: nothing, info: nothing, warn: count, error: count };

function workerOf(sluice: Sluice, log: LogWriter): Worker {
  const handlers = served.map((name) =>
    contracts[name].handle((work, ctx) => inHandWhile(() => handle(log, work, ctx))),
  );
  return sluice.worker({
    handlers: [...handlers, ...partHandlers(log, inHandWhile)],
    name: orders.name,
    leaseMs: LEASE_MS,
    maxConcurrentTasks: orders.tasksMax,
    claimBatchSize: 10,
    pollIntervalMs: 100,
    dbConnections: 9,
    metrics: { port: 0 },
  });
}

async function inHandWhile<T>(work: () => Promise<T>): Promise<T> {
  reporter.tell({ inHand: ++inHand });
  try {
    return await work();
  } finally {
    reporter.tell({ inHand: --inHand, ended: ++ended });
  }
}

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
  reporter.tell({ unblocked: true });
}

endWithHarness();
process.on("message", (message: ToProcess) => {
  if (message.do === "block") block(message.ms);
});
const log = await LogWriter.open(orders.logUrl, orders.name);
const sluice = await patiently(() => Sluice.connect({ url: orders.url, migrate: false, apiConnections: 1, logger }));

process.once("SIGTERM", () => {
  reporter.tell({ stoppedWith: inHand });
  void (async () => {
    await sluice.close({ graceMs: GRACE_MS });
    if (worker !== null) await log.write([{ kind: "scraped", text: counters(await worker.metrics()), last: true }]);
    await log.close();
    process.exit(0);
  })();
});

// One that could not start has stopped for good: each time another.
worker = await patiently(async () => {
  const started = workerOf(sluice, log);
  await started.start();
  return started;
});
await log.write([{ kind: "serves", types: [...served, ...partNames] }]);
reporter.tell({ ready: true, metricsUrl: worker.metricsUrl! });
setInterval(() => reporter.tell({ rssBytes: process.memoryUsage.rss() }), NEWS_MS).unref();
