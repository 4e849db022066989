// A worker process whose handlers keep the audit. It says what a test may wait for, a line each.
import { EventEmitter } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Sluice, type Logger, type TaskContext, type TaskHandler } from "../../../src/index.js";
import { AuditWriter } from "../../support/audit.js";
import { contractOf, entryOf, type Work, type WorkerConfig, type WorkType } from "./work.js";

const config = JSON.parse(process.env["FLEET_CONFIG"] ?? "{}") as WorkerConfig;
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const log =
  (level: string) =>
  (message: string, fields?: object): void =>
    say(`log ${JSON.stringify({ level, message, at: Date.now(), ...fields })}`);
const logger: Logger = {
  debug: log("debug"),
  info: log("info"),
  warn: log("warn"),
  error: log("error"),
};

const audit = await AuditWriter.open(config.auditUrl, config.name);
const sluice = await Sluice.connect({
  url: config.url,
  migrate: false,
  listen: config.listen ?? true,
  logger,
  ...(config.history === undefined ? {} : { history: config.history }),
});
const worker = sluice.worker({
  handlers: config.types.map(handlerOf),
  name: config.name,
  ...config.worker,
});
const arrivals = new EventEmitter();
const ALONE_MS = 300;
let inHand = 0;

function handlerOf(about: WorkType): TaskHandler<Work, Work, { by: string }> {
  return contractOf(about).handle(async (work, ctx) => {
    const entry = entryOf(about, work, ctx);
    inHand++;
    arrivals.emit("arrival");
    try {
      await audit.start(entry);
      say(`started ${ctx.id} of ${inHand}`);
      await perform(work, ctx);
      await audit.end(entry);
      return { by: config.name };
    } finally {
      inHand--;
    }
  });
}

async function perform(work: Work, ctx: TaskContext): Promise<void> {
  if (config.holds === true) return forever();
  if (work.do === "die") return die(work.beside ?? 1);
  if (work.do === "hang") return aborted(ctx);
  await delay(work.do === "together" ? work.ms - (Date.now() % work.ms) : work.ms);
}

/** Waits for its signal, tells the reason and then ends as if nothing had happened. */
function aborted(ctx: TaskContext): Promise<void> {
  return new Promise((resolve) => {
    ctx.signal.addEventListener("abort", () => {
      say(`aborted ${ctx.id} ${(ctx.signal.reason as { code?: string }).code}`);
      resolve();
    });
  });
}

function forever(): Promise<never> {
  return new Promise(() => {});
}

/** Takes others with it if there are others, and goes alone if nobody comes. */
async function die(beside: number): Promise<void> {
  await Promise.race([crowd(beside), delay(ALONE_MS)]);
  process.kill(process.pid, "SIGKILL");
  return forever();
}

function crowd(size: number): Promise<void> {
  return inHand >= size
    ? Promise.resolve()
    : new Promise((resolve) => arrivals.once("arrival", () => resolve(crowd(size))));
}

process.once("SIGTERM", () => {
  void (async () => {
    await worker.stop({ graceMs: 2_000 });
    say(`status ${JSON.stringify(worker.status())}`);
    await sluice.close();
    await audit.close();
    say("ended");
  })();
});

await worker.start();
say("ready");
