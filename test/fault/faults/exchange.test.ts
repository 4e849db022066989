import { expect, onTestFinished, test } from "vitest";
import { isClaim, isEnqueue, isSettle } from "../../../fault/faults/exchange.js";
import { WireProxy } from "../../../fault/proxy.js";
import type { Exchange } from "../../../fault/stage.js";
import { Sluice, task, type, workflow } from "../../../src/index.js";
import { scene, until, type Scene } from "../../flow/scene.js";

/** Everything that goes by between a Sluice and the server, once it is answered. */
async function overheard(s: Scene): Promise<{ behind: Sluice; said: Exchange[] }> {
  const proxy = await WireProxy.start(s.url);
  const behind = await Sluice.connect({ url: proxy.url, migrate: false, listen: false });
  const said: Exchange[] = [];
  const over = new AbortController();
  const heard = proxy.loseReply((exchange) => {
    said.push({ ...exchange });
    return false;
  }, over.signal);
  onTestFinished(async () => {
    over.abort();
    await heard;
    await behind.close();
    proxy.close();
  });
  return { behind, said };
}

const lists = (asked: string, id: string): boolean => new RegExp(`[{,]${id}[,}]`).test(asked);

test("the faults recognise an enqueue, a claim and a settle on the wire", async () => {
  const s = await scene();
  // So that the id of a task is not also the id of a stream.
  await s.sql.query("select setval('sluice.task_id', 1000)");
  const { behind, said } = await overheard(s);
  const job = task("job", { input: type<{ n: number }>() });
  const inputs = Array.from({ length: 20 }, (_, n) => ({ n }));
  const ids = (await behind.enqueueMany(job, inputs)).ids();
  expect(said.filter(isEnqueue)).toHaveLength(1);
  expect(said.filter(isClaim)).toEqual([]);
  expect(said.filter(isSettle)).toEqual([]);

  const worker = behind.worker({ handlers: [job.handle(() => {})], pollIntervalMs: 50 });
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  await worker.start();
  await until("all to end", async () => (await behind.counts()).succeeded === ids.length);
  const isNeither = (e: Exchange): boolean => e.statement.endsWith(".step") && !isClaim(e) && !isSettle(e);
  await until("a look that finds nothing, which is neither", () => said.some(isNeither));
  await worker.stop();

  const claims = said.filter(isClaim);
  const settles = said.filter(isSettle);
  expect(claims.length).toBeGreaterThan(0);
  for (const id of ids) expect(settles.filter(({ asked }) => lists(asked, id))).toHaveLength(1);
});

test("the faults recognise the start of a run as an enqueue", async () => {
  const s = await scene();
  const { behind, said } = await overheard(s);
  const job = task("job", { input: type<{ n: number }>() });
  const jobs = workflow("jobs", { input: type<{ n: number }>() }, (w, { n }) => {
    w.task("only", job, { n });
  });
  await behind.start(jobs, { n: 1 });
  expect(said.filter(isEnqueue)).toHaveLength(1);
});

test("the faults recognise an outcome other than success as a settle", async () => {
  const s = await scene();
  const { behind, said } = await overheard(s);
  const fails = task("fails", { retry: { attempts: 1 } });
  const worker = behind.worker({
    handlers: [fails.handle(() => Promise.reject(new Error("as told")))],
    pollIntervalMs: 50,
  });
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  await worker.start();
  await behind.enqueue(fails);
  await until("it to fail", async () => (await behind.counts()).failed === 1);
  await worker.stop();
  expect(said.filter(isSettle).map(({ statement }) => statement)).toEqual(["sluice.settle"]);
});

test("the faults recognise the commit of a handler's transaction as a settle", async () => {
  const s = await scene();
  const { behind, said } = await overheard(s);
  const books = task("books");
  const handler = books.handle((_, ctx) => ctx.transaction(async (tx) => void (await tx.query("select 1"))));
  const worker = behind.worker({ handlers: [handler], pollIntervalMs: 50 });
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  await worker.start();
  await behind.enqueue(books);
  await until("it to end", async () => (await behind.counts()).succeeded === 1);
  await worker.stop();
  expect(said.filter(isSettle).map(({ statement }) => statement)).toEqual(["commit"]);
});
