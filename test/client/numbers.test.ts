import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exponential, fixed, limit, Sluice, snooze, task, type, type SluiceError } from "../../src/index.js";
import { codeOf, openHouse, type House } from "./house.js";

const good = task("good", { input: type<number>() });
const handlers = [good.handle(() => 1)];
let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const bad = [-1, 0.5, NaN, Infinity, -Infinity, 1e308, 2 ** 53, "5", true, {}, [1], () => 1];
/** Durations are rounded, so a fraction is not bad. */
const badMs = [...bad.filter((n) => n !== 0.5), -0.5];
const notNegative = bad.filter((n) => n !== -1);

/** Expects every bad number to be refused, and the next valid enqueue to succeed. */
async function expectRefused(use: (n: never) => unknown, numbers: unknown[]): Promise<void> {
  const before = await house.tasks();
  for (const n of numbers) {
    expect(await codeOf(() => use(n as never)), String(n)).toBe("invalid_option");
  }
  expect(await house.tasks()).toBe(before);
  await house.sluice.enqueue(good, 1);
  expect(await house.tasks()).toBe(before + 1);
}

describe("negative, fractional, NaN and huge numbers", () => {
  test.each([
    ["payloadBytesMax", [0]],
    ["resultBytesMax", [0]],
    ["idempotencyMs", []],
    ["apiConnections", [0]],
  ])("connect() refuses a bad %s before it opens a connection", async (option, more) => {
    const connect = (n: number) => Sluice.connect({ url: "postgres://nobody.invalid", [option]: n });
    await expectRefused(connect, [...bad, ...more]);
  });

  test.each(["succeededMs", "failedMs", "cancelledMs"])("connect() refuses a bad history.%s", async (age) => {
    const connect = (n: number) => Sluice.connect({ url: "postgres://nobody.invalid", history: { [age]: n } });
    await expectRefused(connect, bad);
  });

  test.each<[string, (n: never) => unknown, unknown[]]>([
    ["a task's concurrency", (n) => task("t", { concurrency: n }), [...bad, null]],
    ["a task's priority", (n) => task("t", { priority: n }), [...notNegative, -32_001, 32_001]],
    ["a task's timeoutMs", (n) => task("t", { timeoutMs: n }), [...bad, 0]],
    ["a task's attempts", (n) => task("t", { retry: { attempts: n } }), [...bad, 0, 32_001]],
    ["a limit's total", (n) => limit("l", { total: n }), bad],
    ["a limit's perKey", (n) => limit("l", { perKey: n }), bad],
    ["exponential's minMs", (n) => exponential({ minMs: n, maxMs: 2_000_000_000 }), badMs],
    ["exponential's maxMs", (n) => exponential({ minMs: 0, maxMs: n }), badMs],
    ["exponential's factor", (n) => exponential({ minMs: 0, maxMs: 1, factor: n }), bad],
    ["exponential's jitter", (n) => exponential({ minMs: 0, maxMs: 1, jitter: n }), bad.filter((n) => n !== 0.5)],
    ["a fixed backoff", (n) => fixed(n), badMs],
    ["snooze", (n) => snooze(n), badMs],
  ])("a bad number is refused in %s", (_, use, numbers) => expectRefused(use, numbers));

  test.each<[string, (n: never) => unknown, unknown[]]>([
    ["priority", (priority) => ({ priority }), [...notNegative, -32_001, 32_001]],
    ["delayMs", (delayMs) => ({ delayMs }), badMs],
    ["groupLimit", (groupLimit) => ({ group: "g", groupLimit }), bad],
    ["runAt", (runAt) => ({ runAt }), [...bad, new Date(NaN), new Date(8e15), new Date(-8e15)]],
    ["runAt with delayMs", (delayMs) => ({ runAt: new Date(), delayMs }), [0, 5]],
    ["groupLimit without a group", (groupLimit) => ({ groupLimit }), [0, 5]],
  ])("enqueue() and enqueueMany() refuse a bad %s", async (_, options, numbers) => {
    await expectRefused((n) => house.sluice.enqueue(good, 1, options(n) as never), numbers);
    await expectRefused((n) => house.sluice.enqueueMany(good, [1], options(n) as never), numbers);
  });

  test.each(["maxConcurrentTasks", "claimBatchSize", "pollIntervalMs", "claimLoops", "dbConnections", "leaseMs"])(
    "worker() refuses a bad %s",
    async (option) => {
      await expectRefused((n) => house.sluice.worker({ handlers, [option]: n }), bad);
    },
  );

  test("stop(), result() and limits.set() refuse a bad number", async () => {
    const mail = limit("mail", { total: 1 });
    const tenant = limit("tenant", { perKey: 1 });
    await house.sluice.sync([mail, tenant]);
    const worker = house.sluice.worker({ handlers });
    const handle = await house.sluice.enqueue(good, 1);
    await expectRefused((graceMs) => worker.stop({ graceMs }), bad);
    await expectRefused((timeoutMs) => handle.result({ timeoutMs }), [...bad, 0]);
    await expectRefused((total) => house.sluice.limits.set("mail", { total }), bad);
    await expectRefused((perKey) => house.sluice.limits.set(tenant, { perKey }), bad);
    expect(await house.sluice.limits.list()).toMatchObject([
      { name: "mail", total: 1, overridden: false },
      { name: "tenant", perKey: 1, overridden: false },
    ]);
  });

  test("a fraction of a millisecond in delayMs and result() is rounded", async () => {
    const far = await house.sluice.enqueue(good, 1, { delayMs: 40_814.87 });
    expect(await far.status()).toMatchObject({ state: "scheduled" });
    await expect(far.result({ timeoutMs: 1.5 })).rejects.toMatchObject({ code: "wait_timeout" });
    const [many] = (await house.sluice.enqueueMany(good, [1], { delayMs: 40_814.87 })).ids();
    expect(await house.sluice.task(many!).status()).toMatchObject({ state: "scheduled" });
  });

  test("extend() refuses a bad number", async () => {
    const extending = task("extending");
    const worker = await house.work([
      extending.handle((_, ctx) =>
        [...bad, 0].map((ms) => {
          try {
            ctx.extend(ms as number);
            return "accepted";
          } catch (e) {
            return (e as SluiceError).code;
          }
        }),
      ),
    ]);
    const codes = await (await house.sluice.enqueue(extending)).result({ timeoutMs: 10_000 });
    expect(new Set(codes as string[])).toEqual(new Set(["invalid_option"]));
    await worker.stop();
  });
});

describe("unknown and malformed options", () => {
  test.each<[string, (options: never) => unknown]>([
    ["connect", (options) => Sluice.connect(options)],
    ["history", (history) => Sluice.connect({ url: house.url, history })],
    ["task", (options) => task("t", options)],
    ["limit", (options) => limit("l", options)],
    ["enqueue", (options) => house.sluice.enqueue(good, 1, options)],
    ["enqueueMany", (options) => house.sluice.enqueueMany(good, [1], options)],
    ["worker", (options) => house.sluice.worker(options)],
    ["stop", (options) => house.sluice.worker({ handlers }).stop(options)],
    ["result", (options) => house.sluice.task("1").result(options)],
    ["cancel", (options) => house.sluice.task("1").cancel(options)],
    ["limits.set", (options) => house.sluice.limits.set("mail", options)],
    ["exponential", (options) => exponential(options)],
  ])("unknown options are refused by %s", async (_, use) => {
    const options = [{ tiemoutMs: 5 }, { constructor: 1 }, JSON.parse('{"__proto__": 5}'), 5, "x"];
    await expectRefused(use, [...options, [], true]);
  });

  test.each<[string, (value: never) => unknown]>([
    ["tx", (tx) => house.sluice.enqueue(good, 1, { tx })],
    ["tx of many", (tx) => house.sluice.enqueueMany(good, [1], { tx })],
    ["tx of a cancel", (tx) => house.sluice.task("1").cancel({ tx })],
    ["idempotencyKey of many", (k) => house.sluice.enqueueMany(good, [1], { idempotencyKey: k })],
    ["handlers", (list) => house.sluice.worker({ handlers: list })],
    ["a handler", (one) => house.sluice.worker({ handlers: [one] })],
    ["inputs of many", (inputs) => house.sluice.enqueueMany(good, inputs)],
    ["sync", (list) => house.sluice.sync(list)],
    ["url", (url) => Sluice.connect({ url })],
    ["listenUrl", (listenUrl) => Sluice.connect({ url: house.url, listenUrl })],
  ])("a value of another type is refused for %s", async (_, use) => {
    await expectRefused(use, [5, "x", {}, { query: 5 }, true, Symbol("x")]);
  });

  test("embedded beside another database is refused", async () => {
    expect(await codeOf(() => Sluice.connect({ embedded: true, url: house.url }))).toBe("invalid_option");
  });
});

describe("numbers of a worker from the environment", () => {
  test.each(["-1", "0.5", "NaN", "1e9", " ", " 5", "five", "999999999999"])(
    "a bad number from the environment is refused: %j",
    async (text) => {
      process.env["MAX_CONCURRENT_TASKS"] = text;
      try {
        expect(await codeOf(() => house.sluice.worker({ handlers }))).toBe("invalid_option");
      } finally {
        delete process.env["MAX_CONCURRENT_TASKS"];
      }
    },
  );
});

test("the smallest and largest accepted numbers can be claimed", async () => {
  const edges = [
    task("small", { priority: -32_000, retry: { attempts: 1 }, timeoutMs: 1_000, concurrency: 1 }),
    task("large", {
      priority: 32_000,
      retry: { attempts: 32_000 },
      timeoutMs: 2_147_483_647,
      concurrency: 2_000_000_000,
      limits: [limit("wide", { total: 2_000_000_000 }), limit("open", { total: null })],
    }),
    task("patient", { timeoutMs: null, limits: [limit("deep", { perKey: 2_000_000_000 }).for(1)] }),
  ];
  const worker = await house.work(
    edges.map((edge) => edge.handle((_, ctx) => ctx.extend(2_147_483_647))),
    { claimLoops: 2, dbConnections: 12, maxConcurrentTasks: 100_000, claimBatchSize: 1000 },
  );
  for (const edge of edges) {
    for (const options of [
      {},
      { priority: 32_000, runAt: new Date(0), group: "huge", groupLimit: 2_000_000_000 },
      { priority: -32_000, delayMs: 0, group: "free" },
    ]) {
      const handle = await house.sluice.enqueue(edge, undefined, options);
      await handle.result({ timeoutMs: 10_000 });
    }
  }
  const far = await house.sluice.enqueue(good, 1, { delayMs: 360 * 24 * 3_600_000 });
  expect(await far.status()).toMatchObject({ state: "scheduled" });
  await worker.stop({ graceMs: 0 });
  expect(await house.sql("select * from sluice.violation")).toEqual([]);
});
