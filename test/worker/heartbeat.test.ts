import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { silentLogger } from "../../src/core/ports.js";
import type { Line } from "../../src/postgres/line.js";
import type { AnyStatement } from "../../src/postgres/statement.js";
import { Heart } from "../../src/worker/heartbeat.js";
import { Permits } from "../../src/worker/permits.js";

const LEASE_MS = 1_500;
const BEAT_MS = LEASE_MS / 3;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Told {
  began: number[];
  lost: number[];
}

type Answer = (statement: string) => Promise<object[]>;

const alive = { alive: true, stops: null, stop_reasons: null, suspect: null };
const never = (): Promise<never> => new Promise(() => {});
const after = (ms: number, rows: object[]): Promise<object[]> =>
  new Promise((resolve) => setTimeout(() => resolve(rows), ms));

/** A heart whose database answers as told, and when its sessions began and were lost. */
async function heart(answer: Answer): Promise<Told> {
  const from = Date.now();
  const told: Told = { began: [], lost: [] };
  const now = (): number => Date.now() - from;
  let registrations = 0;
  const line = {
    run: ({ name }: AnyStatement) =>
      name === "register" ? Promise.resolve([{ id: String(++registrations) }]) : answer(name),
  };
  await new Heart({
    line: line as unknown as Line,
    registration: { name: "w", streams: [1], leaseMs: LEASE_MS, capacity: 1 },
    permits: new Permits(1),
    clock: { now },
    log: silentLogger,
    known: () => [],
    onBegan: () => told.began.push(now()),
    onLost: () => told.lost.push(now()),
    onStop: () => {},
    onSuspect: () => {},
  }).start();
  return told;
}

test("a session that hears nothing is lost before its lease runs out, and another begins", async () => {
  const told = await heart(never);
  await vi.advanceTimersByTimeAsync(LEASE_MS - 151);
  expect(told.lost).toEqual([]);
  await vi.advanceTimersByTimeAsync(60);
  expect(told.lost).toHaveLength(1);
  expect(told.lost[0]).toBeLessThan(LEASE_MS - 80);
  expect(told.began).toHaveLength(2);
});

test("a lease counts from when its heartbeat was sent, not from when the answer came", async () => {
  let beats = 0;
  const told = await heart(() => (beats++ === 0 ? after(600, [alive]) : never()));
  await vi.advanceTimersByTimeAsync(BEAT_MS + LEASE_MS - 151);
  expect(told.lost).toEqual([]);
  await vi.advanceTimersByTimeAsync(60);
  expect(told.lost).toHaveLength(1);
});

test("a session that is answered goes on and on", async () => {
  const told = await heart(() => after(5, [alive]));
  await vi.advanceTimersByTimeAsync(20 * LEASE_MS);
  expect(told).toEqual({ began: [0], lost: [] });
});

test("a session that the database has given up is lost at once", async () => {
  const told = await heart(() => after(5, [{ ...alive, alive: false }]));
  await vi.advanceTimersByTimeAsync(BEAT_MS + 10);
  expect(told.lost).toEqual([BEAT_MS + 5]);
  expect(told.began).toHaveLength(2);
});
