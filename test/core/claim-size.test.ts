import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { claimSize, enoughFree, fewFree, type ClaimTerms } from "../../src/core/claim-policy.js";

const NONE = { memory: false, taskDuration: false, eventLoopDelay: false };
const ALL = { memory: true, taskDuration: true, eventLoopDelay: true };

function size(max: number, free: number, terms: Partial<ClaimTerms> = {}): number {
  return claimSize({
    permitsMax: max,
    permitsFree: free,
    settling: 0,
    batchMax: 50,
    payloadRoom: Number.MAX_SAFE_INTEGER,
    wasFew: false,
    filling: false,
    pressed: NONE,
    ...terms,
  });
}

describe("the size of a claim without pressure", () => {
  test.each([
    // Below 10 permits, only 0 free permits stop claims.
    { max: 1, free: 0, asks: 0 },
    { max: 1, free: 1, asks: 1 },
    { max: 9, free: 0, asks: 0 },
    { max: 9, free: 1, asks: 1 },
    { max: 9, free: 9, asks: 9 },
    // From 10 permits on, fewer than 10 % free stop claims.
    { max: 10, free: 0, asks: 0 },
    { max: 10, free: 1, asks: 1 },
    { max: 10, free: 10, asks: 10 },
    { max: 11, free: 1, asks: 0 },
    { max: 11, free: 2, asks: 2 },
    { max: 19, free: 1, asks: 0 },
    { max: 20, free: 1, asks: 0 },
    { max: 20, free: 2, asks: 2 },
    { max: 1000, free: 0, asks: 0 },
    { max: 1000, free: 1, asks: 0 },
    { max: 1000, free: 99, asks: 0 },
    { max: 1000, free: 100, asks: 50 },
    { max: 1000, free: 1000, asks: 50 },
  ])("a worker with $free of $max free permits claims $asks", ({ max, free, asks }) => {
    expect(size(max, free)).toBe(asks);
  });

  test.each([
    { max: 10, free: 1, asks: 1 },
    { max: 20, free: 1, asks: 1 },
    { max: 1000, free: 99, asks: 50 },
    { max: 1000, free: 7, asks: 7 },
    { max: 1000, free: 0, asks: 0 },
  ])("a worker that fills up claims $asks with $free of $max free permits", ({ max, free, asks }) => {
    expect(size(max, free, { filling: true })).toBe(asks);
    expect(size(max, free, { filling: true, wasFew: true })).toBe(asks);
  });

  test("a worker with a batch larger than its free permits claims as many as are free", () => {
    expect(size(1000, 300, { batchMax: 1000 })).toBe(300);
  });

  test("a worker claims no more tasks than its payload bytes allow", () => {
    expect(size(1000, 1000, { payloadRoom: 7 })).toBe(7);
    expect(size(1000, 1000, { payloadRoom: 0 })).toBe(0);
  });
});

describe("the size of a claim beside settled tasks", () => {
  test.each([
    { max: 9, free: 0, settling: 3, asks: 3 },
    { max: 10, free: 0, settling: 3, asks: 3 },
    { max: 1000, free: 95, settling: 10, asks: 50 },
    // Few permits are free even with the settled ones: only settled tasks are replaced.
    { max: 20, free: 0, settling: 1, asks: 1 },
    { max: 1000, free: 0, settling: 4, asks: 4 },
    { max: 1000, free: 50, settling: 4, asks: 4 },
    { max: 1000, free: 0, settling: 90, asks: 50 },
  ])(
    "a worker that settles $settling with $free of $max free permits claims $asks",
    ({ max, free, settling, asks }) => {
      expect(size(max, free, { settling })).toBe(asks);
    },
  );
});

describe("the size of a claim under pressure", () => {
  test.each([
    { what: "memory", pressed: { ...NONE, memory: true }, of50: 25, of10: 5, of3: 1 },
    { what: "slow tasks", pressed: { ...NONE, taskDuration: true }, of50: 35, of10: 7, of3: 2 },
    { what: "a slow event loop", pressed: { ...NONE, eventLoopDelay: true }, of50: 35, of10: 7, of3: 2 },
    { what: "slow tasks and a slow event loop", pressed: { ...ALL, memory: false }, of50: 24, of10: 4, of3: 1 },
    { what: "all kinds", pressed: ALL, of50: 12, of10: 2, of3: 1 },
    { what: "no kind", pressed: NONE, of50: 50, of10: 10, of3: 3 },
  ])("pressure of $what leaves a claim $of50 of 50, $of10 of 10, $of3 of 3", ({ pressed, of50, of10, of3 }) => {
    expect(size(1000, 1000, { pressed })).toBe(of50);
    expect(size(10, 10, { pressed })).toBe(of10);
    expect(size(9, 3, { pressed })).toBe(of3);
  });

  test.each([1, 9, 10, 1000])("pressure leaves every claim at least one task in a worker with %i permits", (max) => {
    const least = Math.max(1, Math.ceil(max / 10));
    expect(size(max, least, { pressed: ALL, batchMax: 1 })).toBe(1);
    expect(size(max, 0, { pressed: ALL })).toBe(0);
  });

  test("pressure of all kinds leaves exactly 245 of 1000, without a rounding error of 0.5 * 0.7 * 0.7", () => {
    expect(size(1000, 1000, { pressed: ALL, batchMax: 1000 })).toBe(245);
  });

  test("pressure at full load makes a worker claim fewer tasks than it settles", () => {
    const pressed = { ...NONE, memory: true };
    expect(size(1000, 0, { settling: 10, pressed })).toBe(5);
  });
});

describe("the hysteresis of permits", () => {
  test.each([
    { max: 1, stops: 0, goesOn: 1 },
    { max: 9, stops: 0, goesOn: 1 },
    { max: 10, stops: 0, goesOn: 1 },
    { max: 100, stops: 9, goesOn: 12 },
    { max: 1000, stops: 99, goesOn: 125 },
  ])("a worker with $max permits stops claiming at $stops free and resumes at $goesOn", ({ max, stops, goesOn }) => {
    expect(fewFree(false, stops, max)).toBe(true);
    expect(fewFree(false, stops + 1, max)).toBe(false);
    expect(fewFree(true, goesOn - 1, max)).toBe(true);
    expect(fewFree(true, goesOn, max)).toBe(false);
  });

  test("enoughFree is the smallest number of free permits that is not few", () => {
    for (let max = 1; max <= 300; max++) {
      expect(fewFree(false, enoughFree(max) - 1, max), `of ${max}`).toBe(true);
      expect(fewFree(false, enoughFree(max), max), `of ${max}`).toBe(false);
    }
  });

  test("a stopped worker claims nothing with its free permits until enough are free", () => {
    expect(size(1000, 110)).toBe(50);
    expect(size(1000, 110, { wasFew: true })).toBe(0);
    expect(size(1000, 125, { wasFew: true })).toBe(50);
  });
});

test("the number of tasks in flight stays constant at full load", () => {
  for (const max of [10, 20, 100, 1000]) {
    let [inHand, wasFew, least] = [0, false, Number.POSITIVE_INFINITY];
    for (let turn = 0; turn < 5_000; turn++) {
      // 1 to 9 tasks end at a time, and there is always a backlog.
      const settling = Math.min(inHand, 1 + (turn % 9));
      const free = max - inHand;
      const asks = size(max, free, { settling, wasFew });
      wasFew = fewFree(wasFew, free + settling, max);
      inHand += asks - settling;
      expect(inHand).toBeLessThanOrEqual(max);
      if (turn > 1_000) least = Math.min(least, inHand);
    }
    expect(least / max, `of ${max}`).toBeGreaterThan(0.9);
    expect(least).toBe(inHand);
  }
});

test("a claim never exceeds permits, batch or bytes, and asks for at least one task if it may", () => {
  const natural = fc.nat({ max: 2_000 });
  const pressed = fc.record({
    memory: fc.boolean(),
    taskDuration: fc.boolean(),
    eventLoopDelay: fc.boolean(),
  });
  const terms = fc.record({
    permitsMax: fc.integer({ min: 1, max: 2_000 }),
    permitsFree: natural,
    settling: natural,
    batchMax: fc.integer({ min: 1, max: 1_000 }),
    payloadRoom: natural,
    wasFew: fc.boolean(),
    filling: fc.boolean(),
    pressed,
  });
  fc.assert(
    fc.property(terms, (t) => {
      const asks = claimSize(t);
      const most = Math.min(t.permitsFree + t.settling, t.batchMax, t.payloadRoom);
      expect(Number.isInteger(asks)).toBe(true);
      expect(asks).toBeLessThanOrEqual(most);
      expect(asks).toBeGreaterThanOrEqual(Math.min(1, t.settling, most));
      // While few permits are free, they add no tasks.
      const few = fewFree(t.wasFew, t.permitsFree + t.settling, t.permitsMax);
      if (few && !t.filling) expect(asks).toBeLessThanOrEqual(t.settling);
      else expect(asks).toBeGreaterThanOrEqual(Math.min(1, most));
    }),
  );
});
