import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { on, once } from "node:events";
import { fileURLToPath } from "node:url";
import { setTimeout } from "node:timers/promises";
import { startEmbedded } from "../src/embedded/index.js";
import { Sluice, task, type } from "../src/index.js";

// A container is told to stop by SIGTERM and killed some time later. The worker stops claiming, lets
// handlers finish for a grace time, hands the rest back with all their attempts, and exits 0.
const GRACE_MS = 3_000;
const scan = task("scan-document", { input: type<{ pages: number }>() });

/** What runs in the container: `CMD ["node", "worker.js"]`. */
async function workInContainer(pageMs: number): Promise<void> {
  const sluice = await Sluice.connect({ url: process.env["DATABASE_URL"]! });
  const worker = sluice.worker({
    maxConcurrentTasks: 4,
    handlers: [
      scan.handle(async ({ pages }, ctx) => {
        process.send?.("started");
        // The signal tells that the grace is over. To stop soon is polite; to ignore it harms nobody.
        for (let page = 0; page < pages; page++)
          await setTimeout(pageMs, null, { signal: ctx.signal });
      }),
    ],
  });
  process.once("SIGTERM", () => {
    // A handler that ignores its signal must not keep the container alive, hence exit().
    void worker
      .stop({ graceMs: GRACE_MS })
      .then(() => sluice.close())
      .then(() => process.exit(0));
  });
  await worker.start();
}

/** Starts this file again as a worker, the way a container would be started. */
function startContainer(url: string, pageMs: number): ChildProcess {
  const env = { ...process.env, DATABASE_URL: url };
  return fork(fileURLToPath(import.meta.url), [String(pageMs)], { env });
}

/** Waits until so many tasks have begun. */
async function begun(container: ChildProcess, tasks: number): Promise<void> {
  let seen = 0;
  for await (const _ of on(container, "message", { close: ["exit"] })) if (++seen === tasks) return;
  throw new Error("the container ended by itself");
}

/** Sends SIGTERM and returns the exit code. */
async function stop(container: ChildProcess): Promise<number | null> {
  const exit = once(container, "exit") as Promise<[number | null]>;
  container.kill("SIGTERM");
  return (await exit)[0];
}

async function deploy(): Promise<void> {
  const server = process.env["DATABASE_URL"] ? null : await startEmbedded();
  const url = server?.url ?? process.env["DATABASE_URL"]!;
  const sluice = await Sluice.connect({ url });
  const documents = [300, 300, 3, 3, 3, 3].map((pages) => ({ pages }));
  const ids = (await sluice.enqueueMany(scan, documents)).ids();
  const look = () => Promise.all(ids.map((id) => sluice.task(id).status()));

  const first = startContainer(url, 50);
  await begun(first, 4);
  // Two long documents and two short ones are in hand now.
  const firstExit = await stop(first);
  const rest = (await look()).filter((document) => document?.state !== "succeeded");
  const states = new Set(rest.map((left) => `${left?.state}, ${left?.attempt} attempts used`));
  console.log(`first container: exit ${firstExit}, ${6 - rest.length} of 6 documents done`);
  console.log(`the others: ${[...states].join("; ")}`);
  assert.equal(firstExit, 0);
  assert.deepEqual([...states], ["ready, 0 attempts used"]);
  assert.ok(rest.length <= 4, "the short tasks must have had time to finish");

  const second = startContainer(url, 0);
  await Promise.all(ids.map((id) => sluice.task(id).result()));
  const secondExit = await stop(second);
  const attempts = (await look()).map((document) => document?.attempt);
  console.log(`second container: exit ${secondExit}, done in attempt ${attempts.join(" ")}`);
  await sluice.close();
  await server?.stop();
  assert.equal(secondExit, 0);
  assert.deepEqual(attempts, [1, 1, 1, 1, 1, 1]);
}

if (process.argv[2] === undefined) await deploy();
else await workInContainer(Number(process.argv[2]));
