// A producer process of the load: offers tasks at an even rate until it has made them all or is stopped.
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "../../src/client.js";
import { LogWriter } from "../log.js";
import { randomOf } from "../random.js";
import { FlowOffers } from "./flow-offer.js";
import { Offers } from "./offer.js";
import { endWithHarness, ordersText, Reporter, type ProducerOrders, type ToProcess } from "./orders.js";
import { patiently } from "./patiently.js";
import { Plan } from "./plan.js";

const TICK_MS = 25;
// While the database is away, so many batches wait for it and no more.
const BATCHES_MAX = 24;

const orders = JSON.parse(ordersText()) as ProducerOrders;
const reporter = new Reporter();
const { tasks: tasksMax } = orders;
let [owed, produced] = [0, 0];
const state = { stopped: false, held: false, aheadMs: 0 };
const under = new Set<Promise<void>>();

endWithHarness();
process.on("message", (message: ToProcess) => {
  if (message.do === "stop") state.stopped = true;
  if (message.do === "hold") state.held = message.held;
  if (message.do === "clock") state.aheadMs = message.aheadMs;
});
const log = await LogWriter.open(orders.logUrl, orders.name);
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const client = await patiently(() =>
  Client.connect({
    url: orders.url,
    migrate: false,
    listen: false,
    apiConnections: 4,
    logger: silent,
  }),
);
const offers = new Offers(client, log, orders.url);
const random = randomOf(orders.seed).fork(orders.name);
const plan = new Plan(orders.name, random, orders.types, () => Date.now() + state.aheadMs);
const flows = new FlowOffers(client, log, random.fork("flows"), orders.flows, {
  url: orders.url,
  producer: orders.name,
  alone: orders.types.length === 0,
});
reporter.tell({ ready: true });
await produce();
await Promise.all(under);
await client.close();
await log.close();
reporter.tell({ finished: true });
setTimeout(() => process.exit(0), 100);

async function produce(): Promise<void> {
  let [due, lastMs] = [0, performance.now()];
  while (!state.stopped) {
    const now = performance.now();
    if (!state.held) due += (orders.rate * (now - lastMs)) / 1_000;
    lastMs = now;
    const most = Math.min(due, tasksMax ?? Infinity);
    while (owed + 1 <= most && under.size < BATCHES_MAX) makeOne(Math.floor(most - owed));
    if (tasksMax !== null && produced >= tasksMax) return;
    await delay(TICK_MS);
  }
}

/** What is withdrawn was never owed. */
function makeOne(most: number): void {
  const flow = flows.next(owed);
  if (flow !== null) {
    const size = flow.works.length;
    owed += size;
    return count(flows.make(flow).then((made) => ((owed -= size - made), made)));
  }
  const batch = plan.flood(owed) ?? plan.next(most);
  if (batch.by !== "rollback") owed += batch.works.length;
  count(offers.make(batch));
}

function count(making: Promise<number>): void {
  const made = making
    .then((count) => reporter.tell({ produced: (produced += count) }))
    .catch((e: unknown) => reporter.tell({ wrong: `${orders.name} gave up: ${String(e)}` }))
    .finally(() => under.delete(made));
  under.add(made);
}
