import { createTraceState, SpanKind, SpanStatusCode, trace, context } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { task, type } from "../../src/index.js";
import { scene, until, type Scene } from "../flow/scene.js";
import { idsOf, registerSdk } from "./sdk.js";

const mail = task("mail", { input: type<{ to: string }>(), queue: "post" });

/** The stored trace of each task, in the order of their ids. */
async function stored({ sql }: Scene): Promise<(string | null)[]> {
  const { rows } = await sql.query<{ trace: string | null }>("select trace from sluice.task order by id");
  return rows.map((row) => row.trace);
}

function textOf({ traceId, spanId }: { traceId: string; spanId: string }): string {
  return `00-${traceId}-${spanId}-01`;
}

test("an enqueue stores no trace without an SDK", async () => {
  const s = await scene({ listen: false });
  await s.sluice.enqueue(mail, { to: "ada" });
  await s.sluice.enqueueMany(mail, [{ to: "bob" }, { to: "eve" }]);
  expect(await stored(s)).toEqual([null, null, null]);
});

test("a client with tracing: false creates no spans and stores no trace", async () => {
  const seen = registerSdk();
  const s = await scene({ listen: false, tracing: false });
  await s.sluice.enqueue(mail, { to: "ada" });
  expect(await stored(s)).toEqual([null]);
  expect(seen.all()).toEqual([]);
});

test("an enqueue uses an SDK that is registered after connect", async () => {
  const s = await scene({ listen: false });
  await s.sluice.enqueue(mail, { to: "ada" });
  const seen = registerSdk();
  await s.sluice.enqueue(mail, { to: "bob" });
  const [span] = await seen.spans("enqueue mail");
  expect(await stored(s)).toEqual([null, textOf(span!.spanContext())]);
});

test("an enqueue creates a PRODUCER span in the trace of its caller and stores it", async () => {
  const seen = registerSdk();
  const s = await scene({ listen: false });
  const caller = trace.getTracer("test").startSpan("caller");
  const { id } = await context.with(trace.setSpan(context.active(), caller), () =>
    s.sluice.enqueue(mail, { to: "ada" }),
  );
  const [span] = await seen.spans("enqueue mail");
  expect(span!.kind).toBe(SpanKind.PRODUCER);
  expect(idsOf(span!.parentSpanContext!)).toEqual(idsOf(caller.spanContext()));
  expect(span!.attributes).toEqual({
    "messaging.system": "sluice",
    "messaging.operation.name": "enqueue",
    "messaging.operation.type": "send",
    "messaging.destination.name": "post",
    "messaging.sluice.type": "mail",
    "messaging.message.id": id,
  });
  expect(await stored(s)).toEqual([textOf(span!.spanContext())]);
});

test("concurrent enqueues that share a statement each store their own span", async () => {
  const seen = registerSdk();
  const s = await scene({ listen: false });
  const sorted = task("sorted", { input: type<string>(), order: (key) => key });
  await s.sluice.enqueue(mail, { to: "warm up" });
  await s.sluice.enqueue(sorted, "warm up");
  const handles = await Promise.all([
    ...["ada", "bob", "eve"].map((to) => s.sluice.enqueue(mail, { to })),
    ...["a", "b"].map((key) => s.sluice.enqueue(sorted, key)),
  ]);
  const spans = [...(await seen.spans("enqueue mail")), ...(await seen.spans("enqueue sorted"))];
  const texts = new Map(spans.map((span) => [span.attributes["messaging.message.id"], textOf(span.spanContext())]));
  const { rows } = await s.sql.query<{ id: string; trace: string; statement: string }>(
    "select id::text, trace, xmin::text as statement from sluice.task where id = any ($1::bigint[])",
    [handles.map(({ id }) => id)],
  );
  expect(rows.map(({ id, trace: text }) => [id, text])).toEqual(rows.map(({ id }) => [id, texts.get(id)]));
  expect(new Set(rows.map(({ trace: text }) => text)).size).toBe(5);
  expect(new Set(rows.map(({ statement }) => statement)).size).toBe(2);
});

test("a bulk enqueue creates one span, even over several statements", async () => {
  const seen = registerSdk();
  const s = await scene({ listen: false });
  const inputs = Array.from({ length: 1_500 }, (_, i) => ({ to: `${i}` }));
  await s.sluice.enqueueMany(mail, inputs);
  const spans = await seen.spans("enqueue mail");
  expect(spans).toHaveLength(1);
  expect(spans[0]!.attributes).toMatchObject({ "messaging.batch.message_count": 1_500 });
  expect(spans[0]!.attributes).not.toHaveProperty("messaging.message.id");
  const texts = await stored(s);
  expect(texts).toHaveLength(1_500);
  expect(new Set(texts)).toEqual(new Set([textOf(spans[0]!.spanContext())]));
});

test("tasks with an order key, a limit, a delay or an idempotency key store their trace", async () => {
  const seen = registerSdk();
  const s = await scene({ listen: false });
  const ordered = task("ordered", { input: type<string>(), order: (key) => key });
  const limited = task("limited", { concurrency: 2 });
  await s.sluice.enqueue(ordered, "a");
  await s.sluice.enqueue(limited, undefined, { group: "some", groupLimit: 1 });
  await s.sluice.enqueue(mail, { to: "ada" }, { delayMs: 60_000 });
  await s.sluice.enqueue(mail, { to: "bob" }, { idempotencyKey: "once" });
  await s.sluice.enqueue(mail, { to: "bob" }, { idempotencyKey: "once" });
  const spans = seen.all();
  expect(spans).toHaveLength(5);
  expect(await stored(s)).toEqual(spans.slice(0, 4).map((span) => textOf(span.spanContext())));
  expect(spans.map((span) => span.attributes["messaging.sluice.existed"] ?? false)).toEqual([
    false,
    false,
    false,
    false,
    true,
  ]);
});

test("an enqueue in the caller's transaction is traced like any other", async () => {
  const seen = registerSdk();
  const s = await scene({ listen: false });
  const client = new pg.Client(s.url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("begin");
  await s.sluice.enqueue(mail, { to: "ada" }, { tx: client });
  await s.sluice.enqueueMany(mail, [{ to: "bob" }], { tx: client });
  await client.query("commit");
  expect(await stored(s)).toEqual(seen.all().map((span) => textOf(span.spanContext())));
});

test("the span of a failed enqueue records the error", async () => {
  const seen = registerSdk();
  const s = await scene({ listen: false });
  const client = new pg.Client(s.url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("begin");
  await expect(client.query("select nothing")).rejects.toThrow();
  await expect(s.sluice.enqueue(mail, { to: "ada" }, { tx: client })).rejects.toThrow();
  const [span] = await seen.spans("enqueue mail");
  expect(span!.status.code).toBe(SpanStatusCode.ERROR);
  expect(span!.attributes["error.type"]).toEqual(expect.any(String));
  expect(span!.events.map((event) => event.name)).toEqual(["exception"]);
});

test("a trace state that is too long is dropped, and the task keeps its link", async () => {
  const seen = registerSdk();
  const s = await scene({ listen: false });
  const traceState = createTraceState(`a=${"x".repeat(250)},b=${"y".repeat(250)}`);
  const remote = { traceId: "1".repeat(32), spanId: "2".repeat(16), traceFlags: 1, traceState };
  await context.with(trace.setSpanContext(context.active(), remote), () => s.sluice.enqueue(mail, { to: "ada" }));
  const [span] = await seen.spans("enqueue mail");
  expect(span!.spanContext().traceState!.serialize()).toHaveLength(505);
  expect(await stored(s)).toEqual([textOf(span!.spanContext())]);
});

test("an SDK that throws does not fail a task", async () => {
  const broken = (): never => {
    throw new Error("the SDK is broken");
  };
  const shutdown = async (): Promise<void> => {};
  registerSdk({ onStart: broken, onEnd: broken, forceFlush: shutdown, shutdown });
  const s = await scene();
  await s.worker({ handlers: [mail.handle(() => "sent")] });
  const handle = await s.sluice.enqueue(mail, { to: "ada" });
  expect(await handle.result()).toBe("sent");
});

test("sluice.enqueue stores a valid traceparent and ignores an invalid one", async () => {
  const s = await scene({ listen: false });
  await s.sluice.sync([mail]);
  const good = textOf({ traceId: "1".repeat(32), spanId: "2".repeat(16) });
  for (const traceparent of [good, null, "nonsense", good + "\n", "x".repeat(100_000)]) {
    await s.sql.query("select sluice.enqueue('mail', '{}', traceparent => $1)", [traceparent]);
  }
  expect(await stored(s)).toEqual([good, null, null, null, null]);
});

test("a tracer provider or context manager that throws fails no task and leaks no permit", async () => {
  const broken = (): never => {
    throw new Error("the SDK is broken");
  };
  const s = await scene();
  const handlers = [mail.handle(() => "sent")];
  const worker = await s.worker({ handlers, maxConcurrentTasks: 1 });
  registerSdk();
  const good = trace.getTracerProvider();
  trace.disable();
  trace.setGlobalTracerProvider({ getTracer: broken });
  expect(await (await s.sluice.enqueue(mail, { to: "ada" })).result()).toBe("sent");
  trace.disable();
  trace.setGlobalTracerProvider(good);
  context.disable();
  const manager = new AsyncLocalStorageContextManager();
  context.setGlobalContextManager(Object.assign(manager, { with: broken, active: broken }));
  expect(await (await s.sluice.enqueue(mail, { to: "ada" })).result()).toBe("sent");
  await until("all permits", () => worker.status().permitsInUse === 0);
});
