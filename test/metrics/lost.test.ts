// The counts of a worker when replies are lost on the wire.
import { expect, onTestFinished, test } from "vitest";
import { Sluice, task, type, type Worker } from "../../src/index.js";
import { Proxy } from "../fault/proxy.js";
import { scene, until, type Scene } from "../flow/scene.js";
import { parsed } from "./scrape.js";

const job = task("job", { input: type<string>() });

async function proxied(): Promise<{ s: Scene; proxy: Proxy; worker: Worker }> {
  const s = await scene();
  // This keeps ids of tasks and streams distinct.
  await s.sql.query("select setval('sluice.task_id', 1000)");
  const proxy = await Proxy.start(s.url);
  const behind = await Sluice.connect({ url: proxy.url, migrate: false, listen: false });
  onTestFinished(() => behind.close());
  const handler = job.handle(async (how, ctx) => {
    if (how === "transaction") await ctx.transaction(async () => {});
  });
  const worker = behind.worker({ handlers: [handler], leaseMs: 1_500, pollIntervalMs: 50 });
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  return { s, proxy, worker };
}

async function counts(worker: Worker): Promise<(number | undefined)[]> {
  await until("the worker to be empty", () => worker.status().permitsInUse === 0);
  const values = parsed(await worker.metrics());
  return ["completed", "unconfirmed", "refused"].map((of) => values.get(`sluice_worker_tasks_${of}_total`));
}

test("a completion whose reply is lost and that is refused when resent counts as unconfirmed", async () => {
  const { s, proxy, worker } = await proxied();
  const handle = await s.sluice.enqueue(job, "plain");
  const lost = proxy.loseReply((e) => e.statement === "sluice.step" && e.asked.includes(`{${handle.id}}`));
  await worker.start();
  await lost;
  await until("it to be refused", () => worker.status().refused === 1);
  expect(await counts(worker)).toEqual([0, 1, 1]);
  await (await s.sluice.enqueue(job, "plain")).result({ timeoutMs: 20_000 });
  await until("the next to be counted", async () => (await counts(worker))[0] === 1);
});

test("a transaction whose commit gets no reply counts as unconfirmed", async () => {
  const { s, proxy, worker } = await proxied();
  const handle = await s.sluice.enqueue(job, "transaction");
  const lost = proxy.loseReply((e) => e.statement === "commit");
  await worker.start();
  await lost;
  await handle.result({ timeoutMs: 20_000 });
  // The handler reports a failure, which is refused because the task has succeeded.
  await until("it to be refused", () => worker.status().refused === 1);
  expect(await counts(worker)).toEqual([0, 1, 1]);
});
