import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import type { Fate } from "./properties/network.js";
import { LEASE_MS, Stage, type Ending, type Script } from "./properties/stage.js";

// A failed run is reported with its seed and path. Shrinking would only change the order of everything.
const numRuns = Number(process.env["SLUICE_PROPERTY_RUNS"] ?? 120);
const seed = process.env["SLUICE_PROPERTY_SEED"];
const RUNS = {
  numRuns,
  endOnFailure: true,
  includeErrorInReport: true,
  ...(seed === undefined ? {} : { seed: Number(seed) }),
};
vi.setConfig({ testTimeout: 30_000 + 100 * numRuns });
const NEVER = 1_000_000;

const one = fc.constant;
const fateOf = (weights: Partial<Record<Fate, number>>): fc.Arbitrary<Fate> =>
  fc.oneof(
    ...Object.entries({ arrives: 10, ...weights }).map(([fate, weight]) => ({
      weight,
      arbitrary: one(fate as Fate),
    })),
  );
const anyFate = fateOf({
  "request lost": 1,
  "reply lost": 1,
  vanishes: 1,
  busy: 1,
  refused: 1,
  "timed out": 1,
  "lease expires": 1,
});
const ending = fc.oneof(
  { weight: 6, arbitrary: one<Ending>("returns") },
  {
    weight: 4,
    arbitrary: fc.constantFrom<Ending[]>("throws", "snoozes", "cancels", "commits"),
  },
  { weight: 1, arbitrary: fc.constantFrom<Ending[]>("waits for its signal", "is deaf") },
);

/** Anything at all, played until everything is over; what a property is about can be said more narrowly. */
const anything: { [key in keyof Script]: fc.Arbitrary<Script[key]> } = {
  scheduler: fc.scheduler(),
  tasks: fc.integer({ min: 1, max: 20 }),
  suspects: one(0),
  permits: fc.integer({ min: 1, max: 6 }),
  batchMax: fc.integer({ min: 1, max: 8 }),
  loops: fc.integer({ min: 1, max: 2 }),
  fates: fc.array(anyFate, { minLength: 20, maxLength: 120 }),
  endings: fc.array(ending, { maxLength: 30 }),
  slow: fc.array(fc.boolean(), { maxLength: 40 }),
  cancels: fc.array(fc.nat({ max: 200 }), { maxLength: 3 }),
  stopAt: one(NEVER),
  calmStop: one(true),
  graceMs: one(0),
  timeoutMs: one(400),
  seed: fc.integer({ min: 0, max: 1_000_000 }),
};

/** Plays many scripts. Nothing that must never be has been seen in any of them. */
async function always(
  narrowed: Partial<typeof anything>,
  check: (stage: Stage, script: Script) => void,
): Promise<void> {
  const script: fc.Arbitrary<Script> = fc.record({ ...anything, ...narrowed });
  const property = fc.asyncProperty(script, async (given) => {
    const stage = new Stage(given);
    await stage.play();
    const violations = [...stage.watcher.violations];
    expect(violations, violations.join("; ")).toEqual([]);
    check(stage, given);
  });
  await fc.assert(property, RUNS);
}

describe("any order of replies, lost replies and handler outcomes", () => {
  test("there are never more tasks in flight than permits, and all permits return", async () => {
    let full = 0;
    await always({}, ({ watcher, worker }, { permits }) => {
      expect(watcher.handlersMax).toBeLessThanOrEqual(permits);
      expect(watcher.heldMax).toBeLessThanOrEqual(permits);
      expect(worker.status().permitsInUse).toBe(0);
      if (watcher.handlersMax === permits) full++;
    });
    expect(full).toBeGreaterThan(0);
  });

  test("every claimed task is settled, released or lost with its lease, and none is settled twice under one claim", async () => {
    await always({}, ({ store }) => {
      expect(store.unfinished).toBe(0);
      expect([...store.running]).toEqual([]);
    });
  });

  test("a success is an event once, and only after it was recorded", async () => {
    let reported = 0;
    await always({}, (stage) => {
      reported += stage.reported.size;
    });
    expect(reported).toBeGreaterThan(0);
  });

  test("tasks of a lost claim reply are released, and do not count as a crash", async () => {
    let unseen = 0;
    const fates = fc.array(fateOf({ "request lost": 1, "reply lost": 3, busy: 1 }), {
      minLength: 20,
      maxLength: 120,
    });
    // Not so slow that leases are lost: then it would be a crash.
    const slow = fc.array(fc.constantFrom(false, false, true), { maxLength: 40 });
    // Too long to wait for a session to finish its other tasks.
    const timeoutMs = one(5 * LEASE_MS);
    await always({ fates, slow, timeoutMs }, ({ store, watcher }) => {
      expect(store.unfinished).toBe(0);
      expect(watcher.unseenMsMax, "the time that they lie there").toBeLessThan(LEASE_MS);
      if (watcher.lostSessions.size === 0) expect(store.crashes).toBe(0);
      if (watcher.lostSessions.size === 0) unseen += watcher.unseen;
    });
    expect(unseen).toBeGreaterThan(0);
  });

  test("an execution aborted for a lost lease records nothing, and is aborted before its lease runs out", async () => {
    let lost = 0;
    const slow = fc.array(fc.boolean(), { minLength: 5, maxLength: 40 });
    const fates = fc.array(fateOf({ "request lost": 4, "reply lost": 2, "lease expires": 1 }), {
      minLength: 40,
      maxLength: 160,
    });
    await always({ fates, slow }, ({ store, watcher }) => {
      expect(store.unfinished).toBe(0);
      lost += watcher.lostSessions.size;
    });
    expect(lost).toBeGreaterThan(0);
  });

  test("a suspect runs alone, and other tasks continue after it", async () => {
    const suspects = fc.integer({ min: 1, max: 2 });
    // Others come back while it runs.
    const again = fc.constantFrom<Ending[]>("returns", "lingers", "throws", "snoozes", "snoozes");
    const endings = fc.array(again, { minLength: 20, maxLength: 40 });
    await always({ suspects, endings }, ({ store, worker }) => {
      expect(store.unfinished).toBe(0);
      expect(worker.status().permitsInUse).toBe(0);
    });
  });
});

describe("stop() at any time", () => {
  const stopAt = fc.nat({ max: 300 });
  const graceMs = fc.constantFrom(0, 100, 2_000);

  test("nothing runs, is claimed or is sent after stop() has resolved", async () => {
    let working = 0;
    const calmStop = fc.boolean();
    await always({ stopAt, graceMs, calmStop }, ({ store }) => {
      if (store.unfinished > 0) working++;
    });
    expect(working).toBeGreaterThan(0);
  });

  test("stop() releases all tasks and returns all permits if the store can be reached", async () => {
    await always({ stopAt, graceMs }, ({ worker, watcher }) => {
      expect(worker.status().permitsInUse).toBe(0);
      expect(watcher.leftBehind).toBe(0);
    });
  });
});
