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
const LOOK_EVERY_MS = 20;
const meetings = new Map<string, Promise<void>>();
let inHand = 0;

function handlerOf(about: WorkType): TaskHandler<Work, Work, { by: string }> {
  return contractOf(about).handle(async (work, ctx) => {
    const entry = entryOf(about, work, ctx);
    inHand++;
    arrivals.emit("arrival");
    try {
      await audit.start(entry);
      say(`started ${ctx.id} of ${inHand}`);
      await perform(about, work, ctx);
      await audit.end(entry);
      return { by: config.name };
    } finally {
      inHand--;
    }
  });
}

async function perform(about: WorkType, work: Work, ctx: TaskContext): Promise<void> {
  if (config.holds === true) return forever();
  if (work.do === "die") return die(work.beside ?? 1);
  if (work.do === "hang") return aborted(ctx);
  if (work.do === "meet") await meeting(about.name, work.beside ?? 1);
  await delay(work.ms);
}

/** One query for all waiting handlers of this process: which tasks are there, here and elsewhere? */
function meeting(type: string, size: number): Promise<void> {
  let met = meetings.get(type);
  if (met === undefined) meetings.set(type, (met = gathered(type, size)));
  return met;
}

async function gathered(type: string, size: number): Promise<void> {
  while ((await audit.startedOf(type)) < size) await delay(LOOK_EVERY_MS);
}

/** Waits for its signal, prints the reason and then ends normally. */
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

/** Kills the process once enough tasks are in flight, or alone after a while. */
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
