import { expect, test } from "vitest";
import { SluiceError, task, type } from "../../src/index.js";
import { issueClaim } from "../../src/core/claim.js";
import { silentLogger } from "../../src/core/ports.js";
import { Executions } from "../../src/worker/executions.js";
import { OUTAGES_MAX } from "../../src/worker/outage.js";
import { Outbox } from "../../src/worker/outbox.js";
import type { AnyHandler, Execution } from "../../src/worker/execution.js";
import { Session } from "../../src/worker/session.js";
import { signal } from "../flow/scene.js";

function executionsOf(handler: unknown, outbox: Outbox, services: object = {}): Executions {
  return new Executions({
    handlers: new Map([[1, handler as AnyHandler]]),
    outbox,
    services: services as never,
    clock: { now: () => 0 },
    log: silentLogger,
    resultBytesMax: 1_000,
    onOutcome: () => {},
    onRecorded: () => {},
  });
}

const claimed = {
  claim: issueClaim("7", "70"),
  stream: 1,
  attempt: 1,
  input: null,
  inputLength: 0,
  holds: 0,
  trace: null,
  nonce: "1",
};

test("a task that arrives after the worker has released its tasks is released too", () => {
  const outbox = new Outbox();
  let runs = 0;
  const handler = task("t", { input: type<unknown>() }).handle(() => void runs++);
  const executions = executionsOf(handler, outbox);
  const session = new Session("1", Number.POSITIVE_INFINITY);
  executions.release(new SluiceError("stopped", "the worker is shutting down"));
  executions.start(claimed, session);
  expect(runs).toBe(0);
  expect(executions.size).toBe(0);
  expect(outbox.takeOthers(10)?.items).toMatchObject([{ claim: { id: "7" }, kind: "release" }]);
});

test("a task that was asked to stop succeeds if its handler returns in time", async () => {
  const outbox = new Outbox();
  const returned = signal<string>();
  const handler = task("t", { input: type<unknown>() }).handle(() => returned.promise);
  const executions = executionsOf(handler, outbox);
  const session = new Session("1", Number.POSITIVE_INFINITY);
  executions.start(claimed, session);
  executions.cancel(session, "7", "enough");
  executions.sweep();
  returned.resolve("done");
  await returned.promise;
  await new Promise((resolve) => setImmediate(resolve));
  expect(outbox.takeOthers(10)?.items ?? []).toEqual([]);
  expect(outbox.takeSuccesses(10)?.items).toMatchObject([{ claim: { id: "7" } }]);
});

test("a task that fails in 50 outages in a row uses an attempt", async () => {
  const outbox = new Outbox();
  const handler = task("t", { input: type<unknown>() }).handle((_, ctx) => ctx.transaction(() => Promise.resolve()));
  const transaction = (execution: Execution): Promise<never> =>
    Promise.reject(execution.excuse(new Error("the server closed the connection")));
  const executions = executionsOf(handler, outbox, { transaction, now: () => 0, log: silentLogger });
  const session = new Session("1", Number.POSITIVE_INFINITY);
  const kinds: (string | undefined)[] = [];
  for (let i = 0; i <= OUTAGES_MAX + 1; i++) {
    executions.start(claimed, session);
    await new Promise((resolve) => setImmediate(resolve));
    kinds.push(outbox.takeOthers(10)?.items[0]?.kind);
  }
  const snoozes = Array.from({ length: OUTAGES_MAX }, () => "snooze");
  expect(kinds).toEqual([...snoozes, "retry", "snooze"]);
});
