import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Look, Spot } from "../../src/postgres/step.js";
import { Spots } from "../../src/worker/spots.js";

let nowMs: number;
let spots: Spots;
let rested: number;

const head = (stream: number, turn: string, gate = 0): Spot => ({ stream, gate, rank: 0, turn });
const sorted = (of: readonly Spot[] | null): Spot[] =>
  (of ?? []).toSorted((a, b) => a.stream - b.stream || a.gate - b.gate);

/** The claim got all it had asked for, unless it says otherwise. */
const learn = (from: readonly Spot[] | null, look: Look | null, want = 1): void =>
  spots.learn(from!, { look, claimed: [{ stream: 1 }] }, want);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  nowMs = rested = 0;
  spots = new Spots({ now: () => nowMs }, () => rested++);
});

afterEach(() => void vi.useRealTimers());

/** Looks take long, and it has been noticed. */
const slow = (look: Look): void => {
  for (let i = 0; i < 3; i++) learn([], look);
};

test("one or two slow searches change nothing", () => {
  for (const ms of [20, 20]) learn(spots.next(), { ms, heads: [head(1, "500")] });
  expect(spots.next()).toEqual([]);
  learn([], null);
  for (const ms of [20, 20]) learn(spots.next(), { ms, heads: [head(1, "500")] });
  expect(spots.next()).toEqual([]);
});

test("every claim searches everywhere while searches are fast", () => {
  for (let i = 0; i < 3; i++) {
    expect(spots.next()).toEqual([]);
    learn([], null);
  }
});

test("claims start at the known heads after slow searches", () => {
  slow({ ms: 20, heads: [head(1, "500"), head(1, "40", 7)] });
  expect(sorted(spots.next())).toEqual([head(1, "500"), head(1, "40", 7)]);
});

test("claims pause until the next full search after a very slow one that found nothing", () => {
  slow({ ms: 20, heads: [] });
  expect(spots.next()).toEqual([]);
  learn([], { ms: 25, heads: [] });
  expect(spots.next()).toBeNull();
  vi.advanceTimersByTime(251);
  expect(rested).toBe(1);
  nowMs = 251;
  expect(spots.next()).toEqual([]);
});

test("claims search everywhere for a while if searches from the heads are slow too", () => {
  slow({ ms: 20, heads: [head(1, "500")] });
  learn(spots.next(), { ms: 6, heads: [head(1, "550")] });
  learn(spots.next(), { ms: 20, heads: [head(1, "600")] });
  expect(spots.next()).toEqual([]);
  nowMs = 1_000;
  slow({ ms: 20, heads: [head(1, "700")] });
  expect(spots.next()).toEqual([head(1, "700")]);
});

test("the heads advance with the claims that start at them", () => {
  slow({ ms: 20, heads: [head(1, "500")] });
  learn(spots.next(), { ms: 0, heads: [head(1, "550")] });
  expect(sorted(spots.next())).toEqual([head(1, "550")]);
});

test("full searches take a tenth of the time, and one claim at a time runs one", () => {
  slow({ ms: 60, heads: [head(1, "1")] });
  nowMs = 599;
  expect(spots.next()).not.toEqual([]);
  nowMs = 600;
  expect(spots.next()).toEqual([]);
  expect(spots.next()).not.toEqual([]);
});

test("a full search comes after a second at the latest", () => {
  slow({ ms: 3_000, heads: [head(1, "1")] });
  nowMs = 999;
  expect(spots.next()).not.toEqual([]);
  nowMs = 1_000;
  expect(spots.next()).toEqual([]);
});

test("a full search finds tasks that were inserted before a head", () => {
  slow({ ms: 20, heads: [head(1, "500")] });
  nowMs = 250;
  const full = spots.next();
  expect(full).toEqual([]);
  learn(full, { ms: 20, heads: [head(1, "3")] });
  expect(spots.next()).toContainEqual(head(1, "3"));
});

test("heads are dropped once a full search is fast again", () => {
  slow({ ms: 20, heads: [head(1, "500")] });
  nowMs = 250;
  const [full, other] = [spots.next(), spots.next()];
  learn(full, null);
  // The reply of a claim that was under way changes nothing.
  learn(other, { ms: 0, heads: [head(1, "600")] });
  expect(spots.next()).toEqual([]);
  slow({ ms: 50, heads: [] });
  expect(spots.next()).toBeNull();
});

test("a claim searches at most 32 sources, and all of them in turn", () => {
  const heads = Array.from({ length: 100 }, (_, i) => head(1, "5", i + 1));
  slow({ ms: 20, heads });
  const seen = new Set<number>();
  for (let i = 0; i < 1_000 && seen.size < 100; i++) {
    const some = spots.next();
    expect(some).toHaveLength(32);
    for (const { gate } of some!) seen.add(gate);
  }
  expect(seen.size).toBe(100);
});

test("a claim that searched only from heads and came back short is followed by a full search", () => {
  slow({ ms: 30, heads: [head(1, "500")] });
  learn(spots.next(), { ms: 0, heads: [] }, 2);
  vi.advanceTimersByTime(300);
  expect(rested).toBe(0);
  vi.advanceTimersByTime(1);
  expect(rested).toBe(1);
});

test("a stopped search schedules no wake-up", () => {
  slow({ ms: 30, heads: [head(1, "500")] });
  const under = spots.next();
  learn(spots.next(), { ms: 0, heads: [] }, 2);
  spots.stop();
  learn(under, { ms: 0, heads: [] }, 2);
  vi.advanceTimersByTime(1_000);
  expect(rested).toBe(0);
});
