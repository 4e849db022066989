import assert from "node:assert/strict";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Worker as Thread } from "node:worker_threads";
import { Sluice, isSluiceError, task, type } from "../src/index.js";

// Work that burns CPU runs in threads, one per core, so that the worker's event loop stays free to
// claim, to settle and to keep its lease. A thread cannot be asked to stop: one whose task was
// aborted is ended, and the next task gets a new one.
interface Counted {
  primes: number;
  tookMs: number;
}
const terms = { input: type<{ below: number | null }>(), output: type<Counted>() };
const countPrimes = task("count-primes", terms);
const countForever = task("count-forever", { ...terms, timeoutMs: 200, retry: { attempts: 1 } });

const alive = new Set<Thread>();
const idle = new Set<Thread>();
// Turns of the event loop, counted by a timer, in total and during each task.
let turns = 0;
const turnsOfTasks: number[] = [];
const counter = setInterval(() => turns++, 5);

function newThread(): Thread {
  const thread = new Thread(new URL("cpu-bound-thread.mjs", import.meta.url));
  alive.add(thread.once("exit", () => alive.delete(thread)));
  return thread;
}

/** Runs one job in a thread of its own. The worker's permits see to it that there are not too many. */
async function inThread(below: number | null, signal: AbortSignal): Promise<Counted> {
  const [thread = newThread()] = idle;
  idle.delete(thread);
  const turnsBefore = turns;
  try {
    thread.postMessage(below);
    const [counted] = (await once(thread, "message", { signal })) as [Counted];
    idle.add(thread);
    turnsOfTasks.push(turns - turnsBefore);
    return counted;
  } catch (e) {
    await thread.terminate();
    throw e;
  }
}

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
const worker = sluice.worker({
  maxConcurrentTasks: availableParallelism(),
  handlers: [
    countPrimes.handle(({ below }, ctx) => inThread(below, ctx.signal)),
    countForever.handle(({ below }, ctx) => inThread(below, ctx.signal)),
  ],
});
await worker.start();

const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const jobs = Array.from({ length: 2 * availableParallelism() }, () => ({ below: 300_000 }));
const many = await sluice.enqueueMany(countPrimes, jobs);
const counted = await Promise.all(many.ids().map((id) => sluice.task<Counted>(id).result()));
delay.disable();

const threads = alive.size;
const endless = await sluice.enqueue(countForever, { below: null });
const failure: unknown = await endless.result().catch((e: unknown) => e);
await sluice.close();
const busy = alive.size - idle.size;
await Promise.all([...alive].map((thread) => thread.terminate()));
clearInterval(counter);

const fewest = Math.min(...turnsOfTasks);
console.log(`${counted.length} tasks in ${threads} threads`);
console.log(`a task takes ${Math.round(counted[0]!.tookMs)} ms of CPU`);
console.log(`a turn of the event loop took ${Math.round(delay.percentile(50) / 1e6)} ms (median)`);
console.log(`the event loop ran during ${fewest > 0 ? "every task" : "some tasks only"}`);
console.log(
  `endless task: ${isSluiceError(failure, "task_failed") ? failure.message : "no error"}`,
);

// A task that runs in the event loop itself sees no turn at all.
assert.ok(fewest > 0, "the event loop was blocked");
assert.equal(turnsOfTasks.length, counted.length);
assert.ok(counted.every(({ primes }) => primes === 25_997));
assert.ok(threads <= availableParallelism());
assert.ok(isSluiceError(failure, "task_failed"));
assert.equal(busy, 0, "the endless task's thread must have ended");
