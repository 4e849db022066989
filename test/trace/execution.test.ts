import { SpanKind, SpanStatusCode, trace, type Tracer } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { expect, onTestFinished, test } from "vitest";
import { cancel, fixed, snooze, Sluice, SluiceError, task, type } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { crash, testSluice } from "../../src/testing/index.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";
import { idsOf, linksOf, registerSdk, type Seen } from "./sdk.js";

const mail = task("mail", { input: type<string>(), queue: "post" });
/** A new tracer for each use, because that of a removed SDK traces nothing. */
const tracer = (): Tracer => trace.getTracer("test");

const quietScene = (): Promise<Scene> => scene({ logger: silentLogger });

async function one(seen: Seen, name: string): Promise<ReadableSpan> {
  const spans = await seen.spans(name);
  expect(spans).toHaveLength(1);
  return spans[0]!;
}

test("an execution creates a CONSUMER span that is the root of a new trace and links to the enqueue", async () => {
  const seen = registerSdk();
  const s = await scene();
  await tracer().startActiveSpan("main", async (span) => {
    await s.worker({ handlers: [mail.handle(() => {})] });
    span.end();
  });
  const { id } = await s.sluice.enqueue(mail, "ada");
  const [run, enqueue] = [await one(seen, "run mail"), await one(seen, "enqueue mail")];
  expect(run.kind).toBe(SpanKind.CONSUMER);
  expect(run.parentSpanContext).toBeUndefined();
  expect(run.spanContext().traceId).not.toBe(enqueue.spanContext().traceId);
  expect(linksOf(run)).toEqual([idsOf(enqueue.spanContext())]);
  expect(run.status.code).toBe(SpanStatusCode.UNSET);
  expect(run.attributes).toEqual({
    "messaging.system": "sluice",
    "messaging.operation.name": "run",
    "messaging.operation.type": "process",
    "messaging.destination.name": "post",
    "messaging.sluice.type": "mail",
    "messaging.message.id": id,
    "messaging.sluice.attempt": 1,
    "messaging.sluice.outcome": "succeeded",
  });
});

const handlers = {
  sync: () => tracer().startSpan("inside").end(),
  async: async () => {
    await new Promise((resolve) => setImmediate(resolve));
    tracer().startSpan("inside").end();
  },
};

test.each(["sync", "async"] as const)("spans of a handler (%s) are children of its execution span", async (kind) => {
  const seen = registerSdk();
  const s = await scene();
  await s.worker({ handlers: [mail.handle(() => handlers[kind]())] });
  await s.sluice.enqueueMany(mail, ["ada", "bob"]);
  const runs = await seen.spans("run mail", 2);
  const inside = await seen.spans("inside", 2);
  const parents = inside.map((span) => idsOf(span.parentSpanContext!));
  expect(new Set(parents)).toEqual(new Set(runs.map((span) => idsOf(span.spanContext()))));
  expect(new Set(runs.map((span) => span.spanContext().traceId)).size).toBe(2);
});

test("each attempt creates a span with the same link, and a failed one records the error", async () => {
  const seen = registerSdk();
  const s = await quietScene();
  const flaky = task("flaky", { retry: { attempts: 2, backoff: fixed(1) } });
  await s.worker({
    handlers: [
      flaky.handle(() => {
        throw new SluiceError("invalid_option", "no such address");
      }),
    ],
  });
  await s.sluice.enqueue(flaky);
  const runs = await seen.spans("run flaky", 2);
  const enqueue = idsOf((await one(seen, "enqueue flaky")).spanContext());
  expect(runs.map(linksOf)).toEqual([[enqueue], [enqueue]]);
  expect(runs.map((span) => span.attributes["messaging.sluice.attempt"])).toEqual([1, 2]);
  expect(runs.map((span) => span.attributes["messaging.sluice.outcome"])).toEqual(["retried", "failed"]);
  for (const run of runs) {
    expect(run.status).toEqual({ code: SpanStatusCode.ERROR, message: "no such address" });
    expect(run.attributes["error.type"]).toBe("invalid_option");
    expect(run.events).toMatchObject([
      {
        name: "exception",
        attributes: {
          "exception.message": "no such address",
          "exception.stacktrace": expect.stringContaining("at ") as string,
        },
      },
    ]);
  }
});

test("spans of cancelled and snoozed executions are not errors", async () => {
  const seen = registerSdk();
  const s = await scene();
  const other = task("other", { input: type<string>() });
  await s.worker({
    handlers: [
      other.handle((how, ctx) => {
        if (how === "cancel") throw cancel("enough");
        if (ctx.attempt === 1) throw snooze(60_000);
      }),
    ],
  });
  await s.sluice.enqueue(other, "cancel");
  await s.sluice.enqueue(other, "snooze");
  const runs = await seen.spans("run other", 2);
  const outcomes = runs.map((span) => span.attributes["messaging.sluice.outcome"]);
  expect(new Set(outcomes)).toEqual(new Set(["cancelled", "snoozed"]));
  expect(runs.map((span) => span.status.code)).toEqual([SpanStatusCode.UNSET, SpanStatusCode.UNSET]);
});

test("the span of an execution handed back at shutdown has outcome released, and the rerun has the same link", async () => {
  const seen = registerSdk();
  const s = await quietScene();
  const began = signal();
  const first = await s.worker({
    handlers: [
      mail.handle(() => {
        began.resolve();
        return new Promise<never>(() => {});
      }),
    ],
  });
  await s.sluice.enqueue(mail, "ada");
  await began.promise;
  await first.stop({ graceMs: 0 });
  await s.worker({ handlers: [mail.handle(() => {})] });
  const [released, again] = await seen.spans("run mail", 2);
  expect(released!.attributes["messaging.sluice.outcome"]).toBe("released");
  expect(again!.attributes["messaging.sluice.outcome"]).toBe("succeeded");
  expect(linksOf(again!)).toEqual(linksOf(released!));
});

test("every enqueue of a handler is a child of its execution span, and the next execution links to it", async () => {
  const seen = registerSdk();
  const s = await scene();
  const next = task("next", { input: type<string>() });
  await s.worker({
    handlers: [
      next.handle(() => {}),
      mail.handle(async (how, ctx) => {
        if (how === "ctx.enqueue") await ctx.enqueue(next, how);
        if (how === "client") await s.sluice.enqueue(next, how);
        if (how !== "ctx.transaction") return;
        await ctx.transaction(async (tx) => {
          await s.sluice.enqueue(next, how, { tx });
          await ctx.enqueue(next, how);
        });
      }),
    ],
  });
  for (const [how, count] of [
    ["ctx.enqueue", 1],
    ["client", 1],
    ["ctx.transaction", 2],
  ] as const) {
    const before = seen.all().length;
    await (await s.sluice.enqueue(mail, how)).result();
    // The enqueue and the execution of the first task, and the same for each task that it enqueues.
    const spans = await until("all spans", () => {
      const since = seen.all().slice(before);
      return since.length === 2 + 2 * count && since;
    });
    const named = (name: string): ReadableSpan[] => spans.filter((span) => span.name === name);
    const run = idsOf(named("run mail")[0]!.spanContext());
    const enqueues = named("enqueue next");
    expect(enqueues.map((span) => idsOf(span.parentSpanContext!))).toEqual(enqueues.map(() => run));
    const links = named("run next").flatMap(linksOf);
    expect(new Set(links)).toEqual(new Set(enqueues.map((span) => idsOf(span.spanContext()))));
  }
});

test("an execution of a task with an invalid or no stored trace has a span without a link", async () => {
  const s = await scene();
  await s.sluice.enqueueMany(mail, ["ada", "bob"]);
  await s.sql.query("update sluice.task set trace = 'nonsense' where id = (select min(id) from sluice.task)");
  const seen = registerSdk();
  await s.worker({ handlers: [mail.handle(() => {})] });
  const runs = await seen.spans("run mail", 2);
  expect(runs.map(linksOf)).toEqual([[], []]);
});

test("a worker with tracing: false creates no span, whatever is stored", async () => {
  const seen = registerSdk();
  const s = await scene();
  const deaf = await Sluice.connect({ url: s.url, migrate: false, tracing: false });
  onTestFinished(() => deaf.close());
  const worker = deaf.worker({
    handlers: [mail.handle(() => trace.getActiveSpan() === undefined)],
  });
  await worker.start();
  const handle = await s.sluice.enqueue(mail, "ada");
  expect(await handle.result()).toBe(true);
  expect(seen.all().map((span) => span.name)).toEqual(["enqueue mail"]);
});

test("drain() of the test kit traces executions as a worker does", async () => {
  const seen = registerSdk();
  const kit = await testSluice({ handlers: [mail.handle(() => handlers.sync())] });
  onTestFinished(() => kit.close());
  await kit.sluice.enqueue(mail, "ada");
  await kit.drain();
  const [run, enqueue] = [await one(seen, "run mail"), await one(seen, "enqueue mail")];
  expect(linksOf(run)).toEqual([idsOf(enqueue.spanContext())]);
  expect(run.attributes["messaging.sluice.outcome"]).toBe("succeeded");
  expect(idsOf((await one(seen, "inside")).parentSpanContext!)).toEqual(idsOf(run.spanContext()));
});

test("the span of an execution with a lost lease has outcome lost, and a suspect task still links to its enqueue", async () => {
  const seen = registerSdk();
  const kit = await testSluice({ handlers: [mail.handle(() => {})] });
  onTestFinished(() => kit.close());
  await kit.sluice.enqueue(mail, "ada");
  const { ran } = await kit.drain({ faults: [crash(mail, { times: 3 })] });
  expect(ran.map(({ outcome }) => outcome)).toEqual(["crashed", "crashed", "crashed", "succeeded"]);
  const runs = await seen.spans("run mail", 4);
  const outcomes = runs.map((span) => span.attributes["messaging.sluice.outcome"]);
  expect(outcomes).toEqual(["lost", "lost", "lost", "succeeded"]);
  expect(runs[0]!.attributes["error.type"]).toBe("lease_lost");
  const enqueue = idsOf((await one(seen, "enqueue mail")).spanContext());
  expect(runs.map(linksOf)).toEqual(runs.map(() => [enqueue]));
});
