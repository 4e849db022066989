import { expect, onTestFinished, test, vi } from "vitest";
import { monotonicClock, oncePerSecond, silentLogger, type Logger } from "../../src/core/ports.js";

type Line = [level: string, message: string, fields: unknown];

function recorder() {
  const lines: Line[] = [];
  const at = (level: string) => (message: string, fields?: unknown) => void lines.push([level, message, fields]);
  const sink: Logger = {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
  const clock = { ms: 0, now: () => clock.ms };
  return { lines, clock, log: oncePerSecond(sink, clock) };
}

test("a repeated log line appears once a second, with the number of suppressed ones", () => {
  const { lines, clock, log } = recorder();
  for (clock.ms = 0; clock.ms <= 2000; clock.ms += 100) log.warn("database gone", { try: clock.ms });
  expect(lines).toEqual([
    ["warn", "database gone", { try: 0 }],
    ["warn", "database gone", { try: 1000, suppressed: 9 }],
    ["warn", "database gone", { try: 2000, suppressed: 9 }],
  ]);
});

test("a suppressed log line appears at the end of its second, even if nothing follows", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { lines, clock, log } = recorder();
  const pass = (ms: number): void => {
    clock.ms += ms;
    vi.advanceTimersByTime(ms);
  };
  for (let i = 0; i < 5; i++) {
    log.warn("gone", { try: i });
    pass(10);
  }
  pass(900);
  expect(lines).toHaveLength(1);
  pass(100);
  expect(lines).toEqual([
    ["warn", "gone", { try: 0 }],
    ["warn", "gone", { try: 4, suppressed: 3 }],
  ]);
  // That was the line of its second.
  log.warn("gone", { try: 5 });
  expect(lines).toHaveLength(2);
  pass(1_100);
  expect(lines.slice(2)).toEqual([["warn", "gone", { try: 5 }]]);
  pass(10_000);
  expect(lines).toHaveLength(3);
});

test("flush() writes suppressed log lines immediately, and only once", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { lines, log } = recorder();
  for (const message of ["a", "b"]) for (let i = 0; i < 3; i++) log.warn(message, { i });
  log.flush();
  expect(lines.slice(2)).toEqual([
    ["warn", "a", { i: 2, suppressed: 1 }],
    ["warn", "b", { i: 2, suppressed: 1 }],
  ]);
  vi.advanceTimersByTime(10_000);
  log.flush();
  expect(lines).toHaveLength(4);
});

test("log lines with another message or level are not suppressed", () => {
  const { lines, log } = recorder();
  log.warn("a");
  log.warn("b");
  log.error("a");
  log.info("a");
  log.debug("a");
  log.warn("a");
  expect(lines.map(([level, message]) => `${level} ${message}`)).toEqual([
    "warn a",
    "warn b",
    "error a",
    "info a",
    "debug a",
  ]);
});

test("the logger remembers 1,000 different messages", () => {
  const { lines, log } = recorder();
  log.warn("first");
  for (let i = 0; i < 999; i++) log.warn(`trouble ${i}`);
  log.warn("first");
  expect(lines).toHaveLength(1000);
  log.warn("one too many");
  log.warn("first");
  expect(lines).toHaveLength(1002);
});

test("a logger that throws does not affect its caller", () => {
  const broken = {
    ...silentLogger,
    warn() {
      throw new Error("disk full");
    },
  };
  expect(() => oncePerSecond(broken).warn("x")).not.toThrow();
});

test("the process clock never runs backwards", () => {
  const first = monotonicClock.now();
  expect(monotonicClock.now()).toBeGreaterThanOrEqual(first);
});
