// One worker process. Its handlers pretend to work, and write what they do into the demo's log.
import { setTimeout as delay } from "node:timers/promises";
import { Sluice, type TaskContext } from "../../src/index.js";
import type { Entry } from "./audit.js";
import type { WorkerOrders } from "./fleet.js";
import { Log } from "./log.js";
import { charge, LEASE_MS, limitsOf, mail, type Job } from "./terms.js";

const name = process.argv[2]!;
const orders = JSON.parse(process.env["DEMO_WORKER"]!) as WorkerOrders;
const log = Log.open(orders.url, orders.logSchema);
const sluice = await Sluice.connect({
  url: orders.url,
  schema: orders.schema,
  migrate: false,
  logger: { debug: () => {}, info: () => {}, warn: say, error: say },
});

/** The demo shows what we write here. */
function say(message: string, fields: Record<string, unknown> = {}): void {
  const about = Object.entries(fields).map(([field, value]) => `${field} ${String(value)}`);
  process.stderr.write(`${message}${about.length === 0 ? "" : ` (${about.join(", ")})`}\n`);
}

/** What both handlers do: say so, take some time, and end in their own way. */
async function perform(
  job: Job,
  ctx: TaskContext,
  end: (entry: Entry) => Promise<void>,
): Promise<void> {
  const entry = entryOf(job, ctx);
  await log.write([{ ...entry, kind: "start" }]);
  try {
    await delay(job.ms, undefined, { signal: ctx.signal });
    await end({ ...entry, kind: "end" });
  } catch (e) {
    await log.write([{ ...entry, kind: "left" }]);
    throw e;
  }
}

function entryOf(job: Job, ctx: TaskContext): Omit<Entry, "kind"> {
  const { id: task, claim, attempt, type } = ctx;
  const run = { worker: name, task, claim, attempt, type, limits: limitsOf(type, job) };
  if (type === "mail") return run;
  return { ...run, tenant: job.tenant, order_key: job.account, place: job.place };
}

const worker = sluice.worker({
  name,
  leaseMs: LEASE_MS,
  pollIntervalMs: 50,
  handlers: [
    // The commit that books a charge is the one that completes its task: both or neither.
    charge.handle((job, ctx) =>
      perform(job, ctx, (end) =>
        ctx.transaction((tx) => log.writeWithin(tx, [{ ...end, recorded: true }])),
      ),
    ),
    mail.handle((job, ctx) => perform(job, ctx, (end) => log.write([end]))),
  ],
});

// Ctrl-C reaches every process of the terminal; the demo decides when its workers leave.
process.on("SIGINT", () => {});
// The demo lets go of us, or is itself gone.
process.once("disconnect", () => {
  void (async () => {
    await sluice.close();
    await log.close();
    process.exit();
  })();
});

await worker.start();
process.send!("ready");
