import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { issueClaim } from "../../src/core/claim.js";
import { silentLogger } from "../../src/core/ports.js";
import { Claimer } from "../../src/worker/claim.js";
import { Outbox } from "../../src/worker/outbox.js";
import { Payloads } from "../../src/worker/payloads.js";
import { Permits } from "../../src/worker/permits.js";
import { Session } from "../../src/worker/session.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Row = readonly unknown[];

/** A claimer over a mocked server, and a list of what it did. */
function claimerOver(answer: (call: { claim: number; settles: boolean }) => Row[]): {
  claimer: Claimer;
  outbox: Outbox;
  session: Session;
  permits: Permits;
  did: string[];
} {
  const [session, outbox, permits] = [new Session("1", 1e9), new Outbox(), new Permits(10)];
  const did: string[] = [];
  const rows = async (_: unknown, values: unknown[]): Promise<Row[]> => {
    await Promise.resolve();
    return answer({ claim: Number(values[3]), settles: values[4] !== null });
  };
  const claimer = new Claimer({
    connections: [{ rows } as never],
    streams: [1],
    permits,
    payloads: new Payloads(1_000_000_000),
    outbox,
    executions: { completed: 0, inputLength: 0, start: () => did.push("start") } as never,
    claimBatchSize: 10,
    pollIntervalMs: 60_000,
    keepHistory: true,
    bell: false,
    clock: { now: () => Date.now() },
    log: silentLogger,
    current: () => session,
    holds: () => true,
    onDoubt: () => did.push("doubt"),
    onLost: () => {},
    onBusy: () => did.push("busy"),
    onUnplaced: () => {},
  });
  return { claimer, outbox, session, permits, did };
}

const claimed = (input: string): Row => ["7", 1, 1, input, 0, null, null, "n"];

test("the lease is checked at the faster rate before the first handler of a claim runs", async () => {
  const tasks = [claimed("1"), claimed("2")];
  const { claimer, did } = claimerOver(() => tasks.splice(0));
  claimer.start();
  claimer.wake();
  await vi.advanceTimersByTimeAsync(10);
  expect(did).toEqual(["busy", "start", "start"]);
});

test("a claim whose statement was refused because of an outcome is sent again immediately", async () => {
  const { claimer, outbox, session, permits, did } = claimerOver(({ settles, claim }) => {
    if (settles && claim > 0) throw Object.assign(new Error("refused"), { code: "22P05" });
    return claim > 0 && did.length === 0 ? [claimed("1")] : [];
  });
  permits.take(1);
  outbox.addSuccess(session, { claim: issueClaim("1", "1"), result: "1", holds: 0, startedMs: 0 });
  claimer.start();
  await vi.advanceTimersByTimeAsync(100);
  expect(did).toEqual(["busy", "start"]);
});

test("a claim with an unreadable reply makes its session release unknown claims", async () => {
  const { claimer, did } = claimerOver(() => [claimed("no JSON")]);
  claimer.start();
  await vi.advanceTimersByTimeAsync(1);
  claimer.stop();
  expect(did).toEqual(["doubt"]);
});
