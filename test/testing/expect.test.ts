import { AssertionError } from "node:assert";
import pg from "pg";
import { expect, test } from "vitest";
import { limit, task, type } from "../../src/index.js";
import { kit } from "./kit.js";

const tenant = limit("tenant", { perKey: 5 });
const mails = limit("mails", { total: 50 });
const both = limit("both", { total: 9, perKey: 3 });
const invoice = task("send-invoice", {
  input: type<{
    tenant: string;
    amount: number;
    lines?: { sku: string; n: number }[];
    due?: Date;
  }>(),
  order: { key: (i) => i.tenant, scope: "billing" },
  limits: [{ limit: tenant, key: (i) => i.tenant }, mails, { limit: both, key: (i) => i.tenant }],
  priority: 3,
});
const now = new Date("2031-05-01T12:00:00Z");

async function failureOf(work: Promise<unknown>): Promise<AssertionError> {
  const e = await work.then(
    () => null,
    (e: unknown) => e,
  );
  expect(e).toBeInstanceOf(AssertionError);
  return e as AssertionError;
}

test("enqueued returns the input of a task and its state, order, limits, priority and times", async () => {
  const t = await kit({ now });
  const { id } = await t.sluice.enqueue(
    invoice,
    { tenant: "acme", amount: 5 },
    { delayMs: 60_000, priority: 7, idempotencyKey: "i-5", group: "batch" },
  );
  expect(await t.enqueued(invoice)).toEqual([
    {
      id,
      input: { tenant: "acme", amount: 5 },
      state: "scheduled",
      attempt: 0,
      priority: 7,
      order: "acme",
      limits: [
        { limit: "tenant", key: "acme" },
        { limit: "mails", key: null },
        { limit: "both", key: "acme" },
        { limit: "batch", key: null },
      ],
      runAt: new Date("2031-05-01T12:01:00Z"),
      idempotencyKey: "i-5",
    },
  ]);
  const plain = task("plain");
  await t.sluice.enqueue(plain);
  expect(await t.enqueued(plain)).toMatchObject([
    { input: null, state: "ready", priority: 0, order: null, limits: [], runAt: null },
  ]);
  expect(await t.enqueued(task("never"))).toEqual([]);
});

test("expectEnqueued finds a task by part of its input and options", async () => {
  const t = await kit({ now });
  const due = new Date("2031-06-01T00:00:00Z");
  const lines = [{ sku: "a", n: 1 }];
  await t.sluice.enqueue(invoice, { tenant: "acme", amount: 5, lines, due });
  await t.sluice.enqueue(invoice, { tenant: "acme", amount: 6 });
  const found = await t.expectEnqueued(invoice, { amount: 5, lines: [{ sku: "a" }], due });
  expect(found.map((f) => f.input.amount)).toEqual([5]);
  await t.expectEnqueued(invoice, { tenant: "acme" }, { times: 2, order: "acme", priority: 3 });
  await t.expectEnqueued(invoice, { tenant: "zen" }, { times: 0 });
  await t.expectEnqueued(invoice);
  await t.expectEnqueued(invoice, undefined, { runAt: null, state: "waiting" });
});

test("a failed expectEnqueued shows what was expected and how the nearest task differs", async () => {
  const t = await kit({ now });
  await t.sluice.enqueue(invoice, { tenant: "zen", amount: 1 });
  const near = await t.sluice.enqueue(invoice, { tenant: "acme", amount: 5 });
  const e = await failureOf(t.expectEnqueued(invoice, { tenant: "acme", amount: 7 }, { priority: 3 }));
  expect(e.message).toBe(
    [
      'expected send-invoice to be enqueued with {"input":{"amount":7,"tenant":"acme"},"priority":3}',
      "found 2 of this type, 0 of them match",
      `the closest, task ${near.id}, differs:`,
      "  task.input.amount: expected 7, found 5",
    ].join("\n"),
  );
  // What vitest and node:test print as a diff.
  expect([e.actual, e.expected, e.operator]).toEqual([
    { input: { tenant: "acme", amount: 5 }, priority: 3 },
    { input: { tenant: "acme", amount: 7 }, priority: 3 },
    "expectEnqueued",
  ]);
  const twice = await failureOf(t.expectEnqueued(invoice, { tenant: "acme" }, { times: 2 }));
  expect(twice.message).toContain("enqueued 2 times with");
  expect([twice.actual, twice.expected]).toEqual([1, 2]);
  const none = await failureOf(t.expectEnqueued(task("other")));
  expect(none.message).toContain("found 0 of this type");
});

test("expectEnqueued sees uncommitted enqueues only inside their transaction", async () => {
  const t = await kit();
  const client = new pg.Client(t.url);
  await client.connect();
  await client.query("begin");
  await t.sluice.enqueue(invoice, { tenant: "acme", amount: 1 }, { tx: client });
  await t.expectEnqueued(invoice, { amount: 1 }, { tx: client });
  expect(await t.enqueued(invoice, { tx: client })).toHaveLength(1);
  await t.expectEnqueued(invoice, {}, { times: 0 });
  await client.query("rollback");
  await t.expectEnqueued(invoice, {}, { times: 0 });
  await client.end();
});

test("expectEnqueued also finds finished tasks with their outcome", async () => {
  const work = task("work", { input: type<number>() });
  const t = await kit({ handlers: [work.handle(() => {})] });
  await t.sluice.enqueue(work, 1);
  await t.drain();
  await t.expectEnqueued(work, 1, { state: "succeeded", attempt: 1 });
});

test("expectEnqueued and enqueued refuse unknown options", async () => {
  const t = await kit();
  await expect(t.expectEnqueued(invoice, {}, { time: 2 } as never)).rejects.toMatchObject({
    code: "invalid_option",
  });
  for (const options of [{ tx: {} }, { txn: 1 }, null])
    await expect(t.enqueued(invoice, options as never)).rejects.toMatchObject({
      code: "invalid_option",
    });
  await expect(t.enqueued("send-invoice" as never)).rejects.toMatchObject({ code: "unknown_task" });
});

test("expectEnqueued and enqueued type inputs by the contract", async () => {
  const t = await kit();
  await t.sluice.enqueue(invoice, { tenant: "acme", amount: 1 });
  // @ts-expect-error -- amount is a number
  await expect(t.expectEnqueued(invoice, { amount: "1" })).rejects.toThrow();
  // @ts-expect-error -- there is no such part
  await expect(t.expectEnqueued(invoice, { amonut: 1 })).rejects.toThrow();
  const [first] = await t.enqueued(invoice);
  expect(first!.input.amount satisfies number).toBe(1);
});
