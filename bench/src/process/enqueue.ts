import { setTimeout as sleep } from "node:timers/promises";
import type { Input, Producer } from "../adapter.js";
import { inputsOf } from "../inputs.js";
import { loadVariant } from "../library/all.js";
import { nowMs } from "../numbers.js";
import type { Enqueued, EnqueueJob, EnqueueSpec, Refusal } from "./messages.js";
import { argument } from "./serve.js";

// A process that enqueues with one library in one of its variants, says how long it took, and ends.
const WARM_UP = 1_000;
const NO_TRANSACTION = "this library cannot enqueue a task in a transaction of the caller";
// Calls that may be under way at once when tasks come at fixed times.
const PACED_IN_FLIGHT_MAX = 8;

process.on("disconnect", () => process.exit(1));
const spec = argument() as EnqueueSpec;
const answer = await answerOf(spec).catch((e: unknown) => ({ failed: String(e) }));
process.send?.(answer, () => process.exit(0));

async function answerOf({ library, variant, url, shape, install, job }: EnqueueSpec) {
  const { adapter } = await loadVariant(library, variant);
  if (install) await adapter.install(url, shape);
  const producer = await adapter.produce(url, shape);
  try {
    if (job.kind === "clients" && producer.enqueueWith === undefined)
      return { cannot: NO_TRANSACTION } satisfies Refusal;
    return await run(producer, job);
  } finally {
    await producer.close();
  }
}

async function run(producer: Producer, job: EnqueueJob): Promise<Enqueued> {
  const warmUp = await warmedUp(producer, job);
  const cpu = process.cpuUsage();
  const beganMs = nowMs();
  const tasks = await perform(producer, job);
  const ms = nowMs() - beganMs;
  const { user, system } = process.cpuUsage(cpu);
  const rssBytesMax = process.resourceUsage().maxRSS * 1024;
  return { tasks, warmUp, ms, cpuMs: (user + system) / 1_000, rssBytesMax };
}

/** With how many tasks. */
async function warmedUp(producer: Producer, job: EnqueueJob): Promise<number> {
  if (job.kind === "bulk") return lists(producer, WARM_UP, job.inFlight);
  if (job.kind === "singles") return singles(producer, { ...job, count: WARM_UP });
  if (job.kind === "clients") return clients(producer, WARM_UP / 10, job.clients, job.deadlineMs);
  return 0;
}

function perform(producer: Producer, job: EnqueueJob): Promise<number> {
  if (job.kind === "singles") return singles(producer, job);
  if (job.kind === "clients") return clients(producer, job.count, job.clients, job.deadlineMs);
  if (job.kind === "paced") return paced(producer, job);
  return lists(producer, job.count, job.inFlight);
}

/** As many lists as calls in flight. An order needs one list, or its keys would race. */
async function lists(producer: Producer, count: number, inFlight: number): Promise<number> {
  const all = inputsOf(count, spec.keys);
  const each = Math.ceil(count / inFlight);
  const parts = Array.from({ length: inFlight }, (_, i) => all.slice(i * each, (i + 1) * each));
  await Promise.all(parts.map((part) => producer.enqueueMany(part)));
  return count;
}

function singles(
  producer: Producer,
  { count, inFlight, deadlineMs }: EnqueueJob & { kind: "singles" },
): Promise<number> {
  return callers((n) => producer.enqueueOne({ n }), count, inFlight, deadlineMs);
}

function clients(producer: Producer, count: number, howMany: number, deadlineMs: number): Promise<number> {
  return callers((n) => producer.enqueueWith!({ n }), count, howMany, deadlineMs);
}

/** So many callers, each of which waits for its call before it makes the next. */
async function callers(
  call: (n: number) => Promise<void>,
  count: number,
  howMany: number,
  deadlineMs: number,
): Promise<number> {
  const untilMs = nowMs() + deadlineMs;
  let next = 0;
  let done = 0;
  const caller = async (): Promise<void> => {
    while (next < count && nowMs() < untilMs) {
      await call(next++);
      done++;
    }
  };
  await Promise.all(Array.from({ length: howMany }, caller));
  return done;
}

/** Whoever cannot keep up with the pace waits, and that counts: the time of a task is when it was due. */
async function paced(producer: Producer, { count, each, everyMs }: EnqueueJob & { kind: "paced" }): Promise<number> {
  const beganMs = nowMs();
  const calls = new Set<Promise<void>>();
  for (let n = 0, turn = 0; n < count; n += each, turn++) {
    const dueMs = beganMs + turn * everyMs;
    const earlyMs = dueMs - nowMs();
    if (earlyMs > 0) await sleep(earlyMs);
    // What a timer is late is nobody's fault.
    const atMs = earlyMs > 0 ? nowMs() : dueMs;
    if (calls.size >= PACED_IN_FLIGHT_MAX) await Promise.race(calls);
    const call = send(producer, some(n, Math.min(each, count - n), atMs)).finally(() => calls.delete(call));
    calls.add(call);
  }
  await Promise.all(calls);
  return count;
}

function some(from: number, count: number, atMs: number): Input[] {
  return Array.from({ length: count }, (_, i) => ({ n: from + i, atMs }));
}

function send(producer: Producer, inputs: readonly Input[]): Promise<void> {
  return inputs.length === 1 ? producer.enqueueOne(inputs[0]!) : producer.enqueueMany(inputs);
}
