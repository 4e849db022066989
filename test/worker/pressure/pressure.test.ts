import { describe, expect, test, vi } from "vitest";
import type { PressureReason } from "../../../src/core/pressure.js";
import type { Logger } from "../../../src/core/ports.js";
import { resolvePressure, type PressureOptions } from "../../../src/worker/pressure/options.js";
import { Pressure } from "../../../src/worker/pressure/pressure.js";

/** A worker's pressure with all its inputs controlled by the test. */
class Bench {
  memoryPercent = 10;
  loopDelayMs = 0;
  stops: ("permits" | "payload")[] = [];
  nowMs = 0;
  idle = false;
  readonly lines: string[] = [];
  readonly read = { memory: vi.fn(() => this.#memory()), loop: vi.fn(() => this.loopDelayMs) };
  readonly onRelief = vi.fn<() => void>();
  readonly pressure: Pressure;

  constructor(options: PressureOptions = {}) {
    const line = (level: string) => (message: string, fields?: Record<string, unknown>) =>
      void this.lines.push(`${level} ${message}: ${String(fields?.["reasons"])}`);
    const log: Logger = {
      debug: line("debug"),
      info: line("info"),
      warn: line("warn"),
      error: line("error"),
    };
    this.pressure = new Pressure({
      thresholds: resolvePressure(options),
      clock: { now: () => this.nowMs },
      log,
      stops: () => this.stops,
      idle: () => this.idle,
      onRelief: this.onRelief,
      readers: { memory: this.read.memory, loopDelayMs: this.read.loop },
    });
  }

  tasksTook(ms: number): void {
    for (let i = 0; i < 100; i++) this.pressure.ended(ms);
  }

  samples(n: number): this {
    for (let i = 0; i < n; i++) this.pressure.sample();
    return this;
  }

  get reasons(): readonly PressureReason[] {
    return this.pressure.state.reasons;
  }

  #memory(): { percent: number; of: "cgroup" } {
    if (Number.isNaN(this.memoryPercent)) throw new Error("no such file");
    return { percent: this.memoryPercent, of: "cgroup" };
  }
}

const UNDER = "warn the worker is under pressure";
const DOWN = "info the pressure on the worker decreased";

test("there is no pressure before the first measurement and in an idle process", () => {
  const bench = new Bench();
  expect(bench.pressure.state).toEqual({ state: "normal", reasons: [] });
  bench.samples(10);
  expect(bench.pressure.state).toEqual({ state: "normal", reasons: [] });
  expect(bench.lines).toEqual([]);
});

test("a worker that was idle measures as soon as it has work", () => {
  vi.useFakeTimers();
  const bench = new Bench();
  bench.idle = true;
  bench.pressure.start();
  bench.memoryPercent = 99;
  // It would have measured by then if it were not idle.
  vi.advanceTimersByTime((bench.nowMs = 400));
  expect(bench.pressure.pressed.memory).toBe(false);
  bench.pressure.speedUp();
  expect(bench.pressure.pressed.memory).toBe(true);
  bench.pressure.stop();
  vi.useRealTimers();
});

describe("single signals", () => {
  test.each([80, 50])("memory above %i % causes pressure until it is well below", (max) => {
    const bench = new Bench({ memoryPercentMax: max });
    bench.memoryPercent = max;
    expect(bench.samples(5).reasons).toEqual([]);
    bench.memoryPercent = max + 0.1;
    expect(bench.samples(1).pressure.state).toEqual({ state: "reduced", reasons: ["memory"] });
    expect(bench.pressure.pressed).toEqual({
      memory: true,
      taskDuration: false,
      eventLoopDelay: false,
    });
    // 75 where the threshold is 80.
    bench.memoryPercent = (max * 75) / 80;
    expect(bench.samples(20).reasons).toEqual(["memory"]);
    bench.memoryPercent -= 0.1;
    expect(bench.samples(3).reasons).toEqual(["memory"]);
    expect(bench.samples(1).pressure.state).toEqual({ state: "normal", reasons: [] });
    expect(bench.lines).toEqual([`${UNDER}: memory`, `${DOWN}: `]);
    expect(bench.onRelief).toHaveBeenCalledTimes(1);
  });

  test("tasks longer than the threshold cause pressure until they are a minute old", () => {
    const bench = new Bench({ taskDurationP99MsMax: 1_000 });
    bench.tasksTook(900);
    expect(bench.samples(1).reasons).toEqual([]);
    bench.tasksTook(1_200);
    expect(bench.samples(1).reasons).toEqual(["task_duration"]);
    expect(bench.pressure.pressed.taskDuration).toBe(true);
    bench.nowMs = 61_000;
    bench.samples(1);
    // Between 0.8 of the threshold and the threshold it stays.
    bench.tasksTook(900);
    expect(bench.samples(10).reasons).toEqual(["task_duration"]);
    bench.nowMs = 130_000;
    bench.samples(1);
    bench.tasksTook(700);
    expect(bench.samples(2).reasons).toEqual(["task_duration"]);
    expect(bench.samples(1).reasons).toEqual([]);
    expect(bench.onRelief).toHaveBeenCalledTimes(1);
  });

  test("a repeated event loop delay causes pressure, and a single one does not", () => {
    const bench = new Bench({ eventLoopDelayMsMax: 100 });
    bench.loopDelayMs = 500;
    bench.samples(2);
    bench.loopDelayMs = 1;
    expect(bench.samples(1).reasons).toEqual([]);
    bench.loopDelayMs = 101;
    expect(bench.samples(2).reasons).toEqual([]);
    expect(bench.samples(1).reasons).toEqual(["event_loop_delay"]);
    expect(bench.pressure.pressed.eventLoopDelay).toBe(true);
    bench.loopDelayMs = 80;
    expect(bench.samples(10).reasons).toEqual(["event_loop_delay"]);
    bench.loopDelayMs = 79;
    expect(bench.samples(4).reasons).toEqual([]);
  });

  test("a full payload bound stops claims, and is logged once however often it recurs", () => {
    const bench = new Bench();
    bench.stops = ["payload"];
    expect(bench.pressure.state).toEqual({ state: "stopped", reasons: ["payload"] });
    // For a moment only is not worth a line.
    bench.samples(3);
    bench.stops = [];
    expect(bench.samples(1).lines).toEqual([]);
    bench.stops = ["payload"];
    bench.samples(4);
    for (let i = 0; i < 10; i++) {
      bench.stops = i % 2 === 0 ? ["payload"] : [];
      bench.samples(1);
    }
    expect(bench.pressure.state.state).toBe("normal");
    expect(bench.lines).toEqual([`${UNDER}: payload`]);
    bench.samples(4);
    expect(bench.lines).toEqual([`${UNDER}: payload`, `${DOWN}: `]);
  });

  test("exhausted permits stop claims without a warning", () => {
    const bench = new Bench();
    bench.stops = ["permits"];
    expect(bench.samples(9).pressure.state).toEqual({ state: "stopped", reasons: ["permits"] });
    bench.stops = [];
    bench.samples(9);
    expect(bench.lines).toEqual([
      "debug the worker ran out of permits, or has free permits again: permits",
      "debug the worker ran out of permits, or has free permits again: ",
    ]);
  });
});

test("several signals at once log a warning each when they start and a line each when they end", () => {
  const bench = new Bench({ taskDurationP99MsMax: 1_000 });
  bench.memoryPercent = 95;
  bench.loopDelayMs = 1_000;
  bench.tasksTook(5_000);
  bench.stops = ["permits", "payload"];
  bench.samples(4);
  expect(bench.pressure.state).toEqual({
    state: "stopped",
    reasons: ["permits", "payload", "memory", "task_duration", "event_loop_delay"],
  });
  bench.stops = [];
  bench.memoryPercent = 10;
  expect(bench.samples(4).pressure.state).toEqual({
    state: "reduced",
    reasons: ["task_duration", "event_loop_delay"],
  });
  bench.loopDelayMs = 0;
  bench.nowMs = 61_000;
  expect(bench.samples(4).pressure.state).toEqual({ state: "normal", reasons: [] });
  const all = "memory,task_duration,permits,payload,event_loop_delay";
  expect(bench.lines.map((line) => line.split(":")[0])).toEqual([UNDER, UNDER, UNDER, DOWN, DOWN]);
  expect(bench.lines[2]!.split(": ")[1]!.split(",").toSorted()).toEqual(all.split(",").toSorted());
  expect(bench.onRelief).toHaveBeenCalledTimes(2);
});

test("a disabled signal is not read and never causes pressure", () => {
  const bench = new Bench({
    memoryPercentMax: false,
    taskDurationP99MsMax: false,
    eventLoopDelayMsMax: false,
  });
  bench.memoryPercent = 99;
  bench.loopDelayMs = 9_999;
  bench.tasksTook(86_400_000);
  expect(bench.samples(10).pressure.state).toEqual({ state: "normal", reasons: [] });
  expect(bench.read.memory).not.toHaveBeenCalled();
  expect(bench.read.loop).not.toHaveBeenCalled();
});

test("an unreadable signal causes no pressure, and ends it", () => {
  const bench = new Bench();
  bench.memoryPercent = 99;
  expect(bench.samples(1).reasons).toEqual(["memory"]);
  bench.memoryPercent = Number.NaN;
  expect(bench.samples(4).reasons).toEqual([]);
});

test.each([
  [{ memoryPercentMax: 0 }, "memoryPercentMax must be an integer from 1 to 99, or false, not 0"],
  [{ memoryPercentMax: "80" }, 'memoryPercentMax must be an integer from 1 to 99, or false, not "80"'],
  [{ eventLoopDelayMsMax: 9 }, "eventLoopDelayMsMax must be an integer from 10 to 60000, or false, not 9"],
  [{ taskDurationP99MsMax: null }, "taskDurationP99MsMax must be an integer from 1 to 86400000, or false, not null"],
  [{ memory: 80 }, 'pressure has no option "memory"'],
])("pressure options %j are refused", (options, message) => {
  expect(() => resolvePressure(options as PressureOptions)).toThrow(message);
});
