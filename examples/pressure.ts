import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setTimeout } from "node:timers/promises";
import { startEmbedded } from "../src/embedded/index.js";
import { Sluice, task, type } from "../src/index.js";
import { makeGroup } from "./pressure/group.js";
import { plot, type Sample } from "./pressure/plot.js";

// 100,000 tasks of 1 KB and 10,000 of 100 KB, more than a gigabyte, arrive at once at a worker that may
// use 256 MB. They stay in the database: what the worker takes is bounded by permits and by bytes.
const small = process.argv.includes("--small");
const share = small ? 0.02 : 1;
const [LITTLE, LARGE] = [100_000 * share, 10_000 * share];
const LIMIT_MB = 256;
// As one would set it in a container of that size. A worker that may not make a control group has only this.
const HEAP_MB = 128;
const SAMPLE_MS = 250;
const MB = 1024 * 1024;
const picture = new URL("../docs/operate/pressure.svg", import.meta.url);

const count = task("count-words", { input: type<{ text: string }>(), output: type<number>() });

/** What runs in the container. */
async function work(url: string): Promise<void> {
  // A control group bounds what is taken from now on: first of all, move in.
  if (process.env["GROUP_PROCS"]) writeFileSync(process.env["GROUP_PROCS"], String(process.pid));
  const quiet = { debug() {}, info() {}, warn() {}, error: console.error };
  const sluice = await Sluice.connect({ url, logger: quiet });
  const worker = sluice.worker({
    handlers: [
      count.handle(async ({ text }) => {
        await setTimeout(100 + 200 * Math.random());
        return text.split(" ").length;
      }),
    ],
  });
  await worker.start();
  let before = worker.status();
  const sampling = setInterval(() => {
    const now = worker.status();
    const claims = now.claims - before.claims;
    process.send?.({
      second: 0,
      rssMb: process.memoryUsage.rss() / MB,
      inFlight: now.inFlight,
      claimSize: claims === 0 ? null : (now.acquired - before.acquired) / claims,
      ...now.pressure,
    } satisfies Sample);
    before = now;
  }, SAMPLE_MS);
  process.once("message", () => {
    clearInterval(sampling);
    void sluice.close().then(() => process.disconnect());
  });
  process.send?.("ready");
}

function* texts(tasks: number, bytes: number): Generator<{ text: string }> {
  const words = "all in good time ".repeat(Math.ceil(bytes / 17)).slice(0, bytes);
  for (let i = 0; i < tasks; i++) yield { text: words };
}

function startWorker(url: string, procs: string | undefined): ChildProcess {
  return fork(fileURLToPath(import.meta.url), ["work"], {
    env: { ...process.env, DATABASE_URL: url, GROUP_PROCS: procs ?? "" },
    execArgv: [...process.execArgv, `--max-old-space-size=${HEAP_MB}`],
  });
}

/** Watches the worker until all tasks have succeeded. */
async function watch(sluice: Sluice, worker: ChildProcess, tasks: number): Promise<Sample[]> {
  const samples: Sample[] = [];
  const begunMs = performance.now();
  worker.on("message", (sample: Sample) =>
    samples.push({ ...sample, second: (performance.now() - begunMs) / 1000 }),
  );
  const died = once(worker, "exit").then(() => {
    throw new Error("the worker's process died");
  });
  const done = async (): Promise<void> => {
    while ((await sluice.counts()).succeeded < tasks) await setTimeout(SAMPLE_MS);
    // And what it looks like afterwards.
    await setTimeout(8 * SAMPLE_MS);
  };
  await Promise.race([done(), died]);
  died.catch(() => {});
  return samples;
}

async function flood(): Promise<void> {
  const server = process.env["DATABASE_URL"] ? null : await startEmbedded();
  const url = server?.url ?? process.env["DATABASE_URL"]!;
  const sluice = await Sluice.connect({ url });
  const group = makeGroup(LIMIT_MB * MB);
  const worker = startWorker(url, group?.procs);
  // Also if something goes wrong.
  process.once("exit", () => {
    worker.kill("SIGKILL");
    group?.remove();
  });
  await once(worker, "message");

  // Paused, so that all of them arrive in one moment: half of the little ones, the large ones, the rest.
  await sluice.pause("default");
  await sluice.enqueueMany(count, texts(LITTLE / 2, 1_000));
  await sluice.enqueueMany(count, texts(LARGE, 100_000));
  await sluice.enqueueMany(count, texts(LITTLE / 2, 1_000));
  await sluice.resume("default");
  const samples = await watch(sluice, worker, LITTLE + LARGE);

  const exit = once(worker, "exit");
  worker.send("stop");
  const [code] = (await exit) as [number | null];
  await sluice.close();
  await server?.stop();

  const most = (of: (s: Sample) => number): number => Math.round(Math.max(...samples.map(of)));
  const rssMb = most((s) => s.rssMb);
  const bound = group === null ? `a heap of ${HEAP_MB} MB` : `a control group of ${LIMIT_MB} MB`;
  const reasons = new Set(samples.flatMap((s) => s.reasons));
  console.log(`${LITTLE} tasks of 1 KB and ${LARGE} of 100 KB at once, in ${bound}`);
  console.log(`memory: at most ${rssMb} MB of ${LIMIT_MB} (RSS)`);
  console.log(`in flight: at most ${most((s) => s.inFlight)} of 1000`);
  console.log(`claims: at most ${most((s) => s.claimSize ?? 0)} tasks each`);
  console.log(`claims were limited by: ${[...reasons].toSorted().join(", ") || "nothing"}`);
  if (!small) {
    const title = `${LITTLE} tasks of 1 KB and ${LARGE} of 100 KB arrive at once, in ${bound}`;
    writeFileSync(picture, plot(samples, title, LIMIT_MB));
  }
  assert.equal(code, 0);
  assert.ok(rssMb < LIMIT_MB, `${rssMb} MB`);
}

if (process.argv[2] === "work") await work(process.env["DATABASE_URL"]!);
else await flood();
