import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SluiceError } from "../../src/core/error.js";
import { silentLogger } from "../../src/core/ports.js";
import type { Connection } from "../../src/postgres/connection.js";
import type { AnyStatement } from "../../src/postgres/statement.js";
import { Heartbeat } from "../../src/worker/heartbeat.js";

const LEASE_MS = 1_500;
const BEAT_MS = LEASE_MS / 3;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Told {
  began: number[];
  lost: number[];
  room: number[];
}

type Answer = (statement: string, values: unknown[]) => Promise<object[]>;

const alive = { alive: true, stops: null, stop_reasons: null, suspect: null };
const never = (): Promise<never> => new Promise(() => {});
const after = (ms: number, rows: object[]): Promise<object[]> =>
  new Promise((resolve) => setTimeout(() => resolve(rows), ms));

/** A heartbeat over a mocked database, and when its sessions began and were lost. */
async function heartbeatOf(answer: Answer): Promise<Told> {
  return (await begin(answer, LEASE_MS)).told;
}

/** registers: how long every registration after the first takes. */
async function begin(
  answer: Answer,
  leaseMs: number,
  registers: () => Promise<unknown> = () => Promise.resolve(),
  free = (): number => 1,
  idle = (): boolean => false,
  hasReserve = (): boolean => false,
  inReserve = (): boolean => false,
  log = silentLogger,
): Promise<{ told: Told; heartbeat: Heartbeat }> {
  const from = Date.now();
  const told: Told = { began: [], lost: [], room: [] };
  const now = (): number => Date.now() - from;
  let registrations = 0;
  const line = {
    run: async ({ name }: AnyStatement, values: unknown[]) => {
      if (name !== "register") return answer(name, values);
      if (registrations++ > 0) await registers();
      return [{ id: String(registrations), on_call: true }];
    },
  };
  const begun = new Heartbeat({
    connection: line as unknown as Connection,
    registration: { name: "w", streams: [1], leaseMs, capacity: 1, connections: 1 },
    free,
    idle,
    hasReserve,
    inReserve,
    clock: { now },
    log,
    known: () => [],
    onBegan: () => told.began.push(now()),
    onLost: () => told.lost.push(now()),
    onStop: () => {},
    onRoom: () => told.room.push(now()),
    onSuspect: () => {},
  });
  await begun.start();
  return { told, heartbeat: begun };
}

test("a session without replies is lost before its lease runs out, and another starts", async () => {
  const told = await heartbeatOf(never);
  await vi.advanceTimersByTimeAsync(LEASE_MS - 151);
  expect(told.lost).toEqual([]);
  await vi.advanceTimersByTimeAsync(60);
  expect(told.lost).toHaveLength(1);
  expect(told.lost[0]).toBeLessThan(LEASE_MS - 80);
  expect(told.began).toHaveLength(2);
});

test("a lease counts from the time its heartbeat was sent, not from the time of the reply", async () => {
  let beats = 0;
  const told = await heartbeatOf(() => (beats++ === 0 ? after(600, [alive]) : never()));
  await vi.advanceTimersByTimeAsync(BEAT_MS + LEASE_MS - 151);
  expect(told.lost).toEqual([]);
  await vi.advanceTimersByTimeAsync(60);
  expect(told.lost).toHaveLength(1);
});

test("a session whose heartbeats are answered continues", async () => {
  const told = await heartbeatOf(() => after(5, [alive]));
  await vi.advanceTimersByTimeAsync(20 * LEASE_MS);
  expect(told).toEqual({ began: [0], lost: [], room: [] });
});

test("a session that the database has expired is lost immediately", async () => {
  const told = await heartbeatOf(() => after(5, [{ ...alive, alive: false }]));
  await vi.advanceTimersByTimeAsync(BEAT_MS + 10);
  expect(told.lost).toEqual([BEAT_MS + 5]);
  expect(told.began).toHaveLength(2);
});

test("a long lease does not make heartbeats rare", async () => {
  const asked: string[] = [];
  await begin((name) => (asked.push(name), after(5, [alive])), 600_000);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.length).toBeGreaterThanOrEqual(11);
});

test("a worker that was full claims again when it reports free permits", async () => {
  let free = 1;
  const told: unknown[] = [];
  const answer: Answer = (name, [, available]) => {
    if (name === "beat") told.push(available);
    // The first report of free permits, or its reply, is lost.
    return told.length === 3 ? Promise.reject(new Error("gone")) : after(5, [alive]);
  };
  const { told: heard } = await begin(answer, 15_000, undefined, () => free);
  await vi.advanceTimersByTimeAsync(5_100);
  expect([told, heard.room]).toEqual([[1], []]);
  free = 0;
  await vi.advanceTimersByTimeAsync(500);
  expect([told, heard.room]).toEqual([[1, 0], []]);
  free = 7;
  await vi.advanceTimersByTimeAsync(5_500);
  expect(told.slice(0, 4)).toEqual([1, 0, 7, 7]);
  expect(heard.room).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(heard.room).toHaveLength(1);
});

test("stop waits for a registration in flight, and unregisters it", async () => {
  const retired: unknown[] = [];
  const { heartbeat: beating } = await begin(
    (name, [id]) => {
      if (name === "retire") retired.push(id);
      return after(5, name === "beat" ? [{ ...alive, alive: false }] : []);
    },
    LEASE_MS,
    () => after(300, []),
  );
  await vi.advanceTimersByTimeAsync(BEAT_MS + 10);
  let stopped = false;
  void beating.stop().then(() => (stopped = true));
  await vi.advanceTimersByTimeAsync(200);
  expect([stopped, retired]).toEqual([false, []]);
  await vi.advanceTimersByTimeAsync(200);
  expect([stopped, retired]).toEqual([true, ["2"]]);
});

test("a session with a lost reply heartbeats immediately and unregisters later", async () => {
  const asked: string[] = [];
  const { heartbeat: beating } = await begin((name) => {
    asked.push(name);
    return after(5, name === "beat" ? [alive] : []);
  }, LEASE_MS);
  beating.doubt(beating.current!);
  await vi.advanceTimersByTimeAsync(20);
  expect(asked).toContain("release_unknown");
  expect(asked).not.toContain("retire");
  await vi.advanceTimersByTimeAsync(BEAT_MS + 20);
  expect(asked).toContain("retire");
});

test("a report during a heartbeat is sent immediately after it", async () => {
  const asked: string[] = [];
  const { heartbeat: beating } = await begin((name) => (asked.push(name), after(5, [alive])), LEASE_MS);
  await vi.advanceTimersByTimeAsync(BEAT_MS + 1);
  expect(asked).toEqual(["beat"]);
  beating.drain();
  await vi.advanceTimersByTimeAsync(10);
  expect(asked).toEqual(["beat", "beat"]);
});

test("a disconnected session reports that it survived, and a frozen one does not", async () => {
  let away = true;
  const told: string[] = [];
  const answer: Answer = (name, [ids]) => {
    if (away) return Promise.reject(new Error("the database is away"));
    // The first time another session has locked it, so it must be reported again.
    if (name === "survived") return after(1, [{ left: told.push(String(ids)) > 1 ? [] : ["1"] }]);
    return after(1, [alive]);
  };
  const lives = await heartbeatOf(answer);
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect(lives.lost).toHaveLength(1);
  away = false;
  await vi.advanceTimersByTimeAsync(2 * LEASE_MS);
  expect(told).toEqual(["{1}", "{1}"]);

  // Its timers do not run for a lease and more, as when its event loop is blocked.
  vi.setSystemTime(Date.now() + 2 * LEASE_MS);
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect(lives.lost).toHaveLength(2);
  expect(told).toHaveLength(2);
});

test("a session that is asked for a heartbeat sends it soon, and one for many requests", async () => {
  const beats: number[] = [];
  const from = Date.now();
  const answer: Answer = (name) => {
    if (name === "beat") beats.push(Date.now() - from);
    return after(5, [alive]);
  };
  const { heartbeat: beating } = await begin(answer, 60_000);
  await vi.advanceTimersByTimeAsync(1_000);
  beating.beatSoon("another's");
  await vi.advanceTimersByTimeAsync(500);
  expect(beats).toEqual([]);
  beating.beatSoon("1");
  await vi.advanceTimersByTimeAsync(2);
  // Under way, and soon after.
  for (let i = 0; i < 10; i++) beating.beatSoon("1");
  await vi.advanceTimersByTimeAsync(50);
  for (let i = 0; i < 10; i++) beating.beatSoon("1");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(beats).toEqual([1_500, 1_600]);
});

test("an idle worker checks its lease rarely, and a busy one often", async () => {
  const [resolved, free] = [(): Promise<void> => Promise.resolve(), (): number => 1];
  let idle = true;
  const answer = (): Promise<object[]> => Promise.resolve([alive]);
  const { heartbeat: watched } = await begin(answer, 15_000, resolved, free, () => idle);
  const watches = vi.spyOn(watched, "watch");
  await vi.advanceTimersByTimeAsync(10_000);
  expect(watches.mock.calls.length).toBeLessThanOrEqual(21);
  idle = false;
  watched.speedUp();
  watches.mockClear();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(watches).toHaveBeenCalledTimes(20);
});

test("a worker with tasks in flight heartbeats every second while others are in reserve", async () => {
  let [beats, reserve] = [0, false];
  const answer = (name: string): Promise<object[]> => {
    if (name === "beat") beats++;
    return after(5, [alive]);
  };
  const busy = (): boolean => false;
  const begun = (): Promise<void> => Promise.resolve();
  await begin(
    answer,
    30_000,
    begun,
    () => 1,
    busy,
    () => reserve,
  );
  await vi.advanceTimersByTimeAsync(10_500);
  expect(beats).toBe(2);
  reserve = true;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(beats).toBeGreaterThanOrEqual(7);
});

test("a worker in reserve with tasks in flight heartbeats every 350 ms", async () => {
  let [beats, idle] = [0, true];
  const answer = (name: string): Promise<object[]> => {
    if (name === "beat") beats++;
    return after(5, [alive]);
  };
  const [begun, yes] = [(): Promise<void> => Promise.resolve(), (): boolean => true];
  const reserve = [() => 1, () => idle, yes, yes] as const;
  const { heartbeat: beating } = await begin(answer, 30_000, begun, ...reserve);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(beats).toBe(0);
  idle = false;
  beating.speedUp();
  await vi.advanceTimersByTimeAsync(400);
  expect(beats).toBe(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(beats).toBeGreaterThanOrEqual(26);
});

test.each([
  ["while its lease lasts", 1_000],
  ["after its lease has ended", 3 * LEASE_MS],
])("the end of an outage is logged once, %s", async (_, outageMs) => {
  const said: string[] = [];
  const log = { ...silentLogger, info: (message: string) => void said.push(message) };
  let away = false;
  const answered = async (): Promise<object[]> => {
    if (away) throw new SluiceError("database_unavailable", "the database is not available");
    return [alive];
  };
  const no = (): boolean => false;
  await begin(answered, LEASE_MS, answered, () => 1, no, no, no, log);
  await vi.advanceTimersByTimeAsync(BEAT_MS);
  away = true;
  await vi.advanceTimersByTimeAsync(BEAT_MS + outageMs);
  expect(said).toEqual([]);
  away = false;
  await vi.advanceTimersByTimeAsync(2 * LEASE_MS);
  expect(said).toEqual([expect.stringMatching(/^connected to the database again after [\d.]+ s$/)]);
  const seconds = Number(/[\d.]+/.exec(said[0]!)![0]);
  expect(seconds).toBeGreaterThanOrEqual(outageMs / 1_000);
  // The longest wait between two tries is 3 s.
  expect(seconds).toBeLessThanOrEqual(outageMs / 1_000 + 3.1);
});

test("an error that is no outage is not followed by a line about a new connection", async () => {
  const said: string[] = [];
  const log = { ...silentLogger, info: (message: string) => void said.push(message) };
  let beats = 0;
  const answer: Answer = () => {
    if (++beats === 2) throw new SluiceError("database_busy", "a deadlock");
    return Promise.resolve([alive]);
  };
  const no = (): boolean => false;
  await begin(answer, LEASE_MS, undefined, () => 1, no, no, no, log);
  await vi.advanceTimersByTimeAsync(4 * BEAT_MS);
  expect(beats).toBeGreaterThan(3);
  expect(said).toEqual([]);
});
