import pg from "pg";
import { expect, expectTypeOf, test } from "vitest";
import { task, type, workflow, type Sluice } from "../../src/index.js";
import { crash, testSluice, type TestHandler } from "../../src/testing/index.js";
import { kit, violations } from "./kit.js";

const send = task("send", { input: type<string>(), output: type<string>() });
const nightly = workflow("nightly", { input: type<string>() }, (w, to) => w.task("send", send, to));
const startNightly = task("start-nightly", { input: type<string>() });
const starter = (sluice: Sluice) =>
  startNightly.handle((to, ctx) => ctx.transaction(async (tx) => (await sluice.start(nightly, to, { tx })).id));

test("a function of handlers gets the test's Sluice and the address of its database", async () => {
  const seen: { sluice?: Sluice; url?: string } = {};
  const t = await kit({
    handlers: (sluice, url) => {
      expectTypeOf(sluice).toEqualTypeOf<Sluice>();
      expectTypeOf(url).toEqualTypeOf<string>();
      Object.assign(seen, { sluice, url });
      return [starter(sluice), send.handle((to) => `sent to ${to}`)];
    },
  });
  expect(seen).toEqual({ sluice: t.sluice, url: t.url });
  const handle = await t.sluice.enqueue(startNightly, "ada");
  expect((await t.drain()).ran).toMatchObject([
    { type: "start-nightly", outcome: "succeeded" },
    { type: "send", outcome: "succeeded" },
  ]);
  const run = t.sluice.run((await handle.result()) as string, nightly);
  expect(await run.result({ timeoutMs: 5_000 })).toBe("sent to ada");
  expect(await violations(t)).toEqual([]);
});

test("a function of handlers may prepare the database first", async () => {
  const t = await kit({
    handlers: async (_, url) => {
      const pool = new pg.Pool({ connectionString: url, max: 1 });
      await pool.query("create table mail (address text)");
      return [
        send.handle(async (to) => {
          await pool.query("insert into mail values ($1)", [to]);
          await pool.end();
          return to;
        }),
      ];
    },
  });
  await t.sluice.enqueue(send, "ada");
  expect((await t.drain()).ran).toMatchObject([{ outcome: "succeeded" }]);
});

test("a function of handlers that throws or returns something else leaves no database behind", async () => {
  const urls: string[] = [];
  const wrong: ((sluice: Sluice, url: string) => readonly TestHandler[])[] = [
    (_, url) => {
      urls.push(url);
      throw new Error("no handlers today");
    },
    (_, url) => {
      urls.push(url);
      return "handlers" as never;
    },
  ];
  const url = process.env["SLUICE_TEST_URL"]!;
  await expect(testSluice({ url, handlers: wrong[0]! })).rejects.toThrow("no handlers today");
  await expect(testSluice({ url, handlers: wrong[1]! })).rejects.toMatchObject({
    code: "invalid_option",
    details: { option: "handlers" },
  });
  for (const left of urls) await expect(new pg.Client(left).connect()).rejects.toMatchObject({ code: "3D000" });
  expect(urls).toHaveLength(2);
});

const other = task("other");
const ordered = task("ordered", { input: type<string>(), order: (to) => to });

test("a drain lists the types that have unfinished tasks and no handler", async () => {
  const t = await kit({ handlers: [send.handle((to) => to)] });
  expect((await t.drain()).unserved).toEqual([]);
  const { id } = await t.sluice.enqueue(other);
  await t.sluice.enqueue(other, undefined, { delayMs: 60_000 });
  await t.sluice.enqueue(send, "ada");
  const elsewhere = await t.sluice.enqueue(task("send", { input: type<string>(), queue: "slow" }), "bob");
  const { ran, unserved } = await t.drain();
  expect(ran).toMatchObject([{ type: "send", outcome: "succeeded" }]);
  expect(unserved).toEqual([
    { type: "other", queue: "default", task: id },
    { type: "send", queue: "slow", task: elsewhere.id },
  ]);
  const again = await t.sluice.enqueue(send, "ada");
  expect((await again.explain())?.reasons).toMatchObject([{ kind: "noWorker" }]);
});

test("a drain lists a type without a handler that a workflow needs, before its task exists", async () => {
  const flow = workflow("flow", { input: type<string>() }, (w, to) =>
    w.task("second", ordered, w.task("first", send, to)),
  );
  const t = await kit({ handlers: [send.handle((to) => to)] });
  await t.sluice.start(flow, "ada");
  const { ran, unserved } = await t.drain();
  expect(ran).toMatchObject([{ type: "send" }]);
  expect(unserved).toEqual([{ type: "ordered", queue: "default", task: null }]);
  await expect(t.drain({ faults: [crash(ordered)] })).rejects.toMatchObject({
    code: "not_drained",
    message: expect.stringContaining("a workflow needs it, but testSluice has no handler for ordered"),
  });
});

test("a fault of a type without a handler says that the handler is missing", async () => {
  const t = await kit({ handlers: [send.handle((to) => to)] });
  const { id } = await t.sluice.enqueue(other);
  await expect(t.drain({ faults: [crash(other)] })).rejects.toMatchObject({
    code: "not_drained",
    message: expect.stringContaining(`task ${id} exists, but testSluice has no handler for other`),
    details: { fault: "crash", type: "other", left: 1 },
  });
});
