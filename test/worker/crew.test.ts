import { expect, test } from "vitest";
import { SluiceError, task, type } from "../../src/index.js";
import { issueClaim } from "../../src/core/claim.js";
import { silentLogger } from "../../src/core/ports.js";
import { Crew } from "../../src/worker/crew.js";
import { Outbox } from "../../src/worker/outbox.js";
import type { AnyHandler } from "../../src/worker/run.js";
import { Session } from "../../src/worker/session.js";

test("a task that arrives after all were handed back is handed back too", () => {
  const outbox = new Outbox();
  let runs = 0;
  const handler = task("t", { input: type<unknown>() }).handle(() => void runs++);
  const crew = new Crew({
    handlers: new Map([[1, handler as unknown as AnyHandler]]),
    outbox,
    desk: {} as never,
    clock: { now: () => 0 },
    log: silentLogger,
    resultBytesMax: 1_000,
    onOutcome: () => {},
    onRecorded: () => {},
  });
  const session = new Session("1", Number.POSITIVE_INFINITY);
  crew.release(new SluiceError("stopped", "the worker is shutting down"));
  crew.start(
    {
      claim: issueClaim("7", "70"),
      stream: 1,
      attempt: 1,
      input: null,
      inputLength: 0,
      holds: 0,
      trace: null,
      nonce: "1",
    },
    session,
  );
  expect(runs).toBe(0);
  expect(crew.size).toBe(0);
  expect(outbox.takeOthers(10)?.items).toMatchObject([{ claim: { id: "7" }, kind: "release" }]);
});
