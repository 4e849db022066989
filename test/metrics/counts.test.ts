// Compares the completed count with the completions that an in-memory database accepted.
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Tally } from "../../src/metrics/tally.js";
import { tellReply } from "../../src/worker/metrics/meter.js";
import { Outbox } from "../../src/worker/outbox.js";
import { Session } from "../../src/worker/session.js";
import { issueClaim } from "../../src/core/claim.js";
import { World, type Fate } from "../worker/harness.js";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const fate = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fate>("arrives") },
  { weight: 1, arbitrary: fc.constantFrom<Fate[]>("request lost", "reply lost", "lease expires") },
);
const options = fc.record({
  scheduler: fc.scheduler(),
  tasks: fc.integer({ min: 1, max: 20 }),
  permits: fc.integer({ min: 1, max: 6 }),
  batchMax: fc.integer({ min: 1, max: 8 }),
  lines: fc.integer({ min: 1, max: 3 }),
  fates: fc.array(fate, { maxLength: 40 }),
  throws: fc.array(fc.boolean(), { maxLength: 10 }),
  /** The worker stops after this many turns, whatever is in flight. */
  turnsMax: fc.integer({ min: 1, max: 400 }),
});

test("completed never exceeds what the database accepted, which never exceeds completed plus unconfirmed", async () => {
  let [unconfirmed, exact] = [0, 0];
  await fc.assert(
    fc.asyncProperty(options, async ({ turnsMax, ...given }) => {
      const tally = new Tally();
      const world = new World({ ...given, meter: tally });
      const accepted = (): number => [...world.db.accepted.values()].reduce((a, b) => a + b, 0);
      for (let turn = 0; !world.over && turn < turnsMax; turn++) {
        if (world.scheduler.count() > 0) await world.scheduler.waitOne();
        else {
          world.beat();
          await vi.advanceTimersByTimeAsync(100);
        }
        await new Promise((resolve) => setImmediate(resolve));
        // This holds at any moment, as a scrape before a kill -9 sees it.
        expect(tally.completions).toBeLessThanOrEqual(accepted());
      }
      world.claimer.stop();
      // Calls in flight end because their connection is closed.
      while (world.scheduler.count() > 0) {
        await world.scheduler.waitOne();
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(tally.completions).toBeLessThanOrEqual(accepted());
      expect(accepted()).toBeLessThanOrEqual(tally.completions + world.outbox.unconfirmed);
      unconfirmed += world.outbox.unconfirmed;
      if (world.outbox.unconfirmed === 0) exact++;
    }),
    { numRuns: 200 },
  );
  // The test proves nothing unless both cases occurred.
  expect(unconfirmed).toBeGreaterThan(0);
  expect(exact).toBeGreaterThan(0);
});

test("a completion without a reply that is refused when resent counts as unconfirmed once", () => {
  const [outbox, session] = [new Outbox(), new Session("1", 0)];
  const completion = (id: string) => ({
    claim: issueClaim(id, "1"),
    result: "",
    holds: 0,
    startedMs: 0,
  });
  outbox.addSuccess(session, completion("1"));
  const lost = outbox.takeSuccesses(10)!;
  outbox.doubt(lost.items);
  outbox.putBackSuccesses(lost);
  // A new completion goes with it: at most one of the two refused may have been accepted before.
  outbox.addSuccess(session, completion("2"));
  const again = outbox.takeSuccesses(10)!;
  outbox.answered(again.items, 2);
  expect(outbox.unconfirmed).toBe(1);
  outbox.answered(again.items, 2);
  expect(outbox.unconfirmed).toBe(1);
});

test("a completion that the database refused does not count as completed", () => {
  const tally = new Tally();
  const parcel = { items: [{ startedMs: 0 }, { startedMs: 0 }, { startedMs: 0 }] };
  const reply = { claimed: [], refused: 2, look: null, unplaced: false, waitMs: null };
  tellReply(tally, reply, { want: 0, parcel, sentMs: 0, nowMs: 1 });
  expect([tally.completions, tally.refusals, tally.claims]).toEqual([1, 2, 0]);
});
