import { afterEach, describe, expect, test, vi } from "vitest";
import { DELAY_MS_MAX, delayFor, exponential, fixed, resolveRetry } from "../../src/core/retry.js";
import type { Backoff } from "../../src/core/retry.js";
import { caught } from "./caught.js";

afterEach(() => vi.restoreAllMocks());

const attempts = [1, 2, 3, 4, 5, 32_767];

describe("exponential backoff", () => {
  test.each([
    [{ minMs: 100, maxMs: 1000, jitter: 0 }, [100, 200, 400, 800, 1000, 1000]],
    [{ minMs: 100, maxMs: 1000, jitter: 0, factor: 1 }, [100, 100, 100, 100, 100, 100]],
    [{ minMs: 1, maxMs: 9, jitter: 0, factor: 1.5 }, [1, 1.5, 2.25, 3.375, 5.0625, 9]],
    [{ minMs: 0, maxMs: 0, jitter: 0 }, [0, 0, 0, 0, 0, 0]],
    [{ minMs: 5, maxMs: 5, jitter: 0 }, [5, 5, 5, 5, 5, 5]],
    [{ minMs: 99.6, maxMs: 1000.4, jitter: 0 }, [100, 200, 400, 800, 1000, 1000]],
  ])("exponential backoff with %j gives the delays %j", (options, delays) => {
    expect(attempts.map(exponential(options))).toEqual(delays);
  });

  test("exponential backoff subtracts up to 10 % at random, so that retries spread out", () => {
    const backoff = exponential({ minMs: 1000, maxMs: 4000 });
    const random = vi.spyOn(Math, "random");
    random.mockReturnValue(0);
    expect(attempts.map(backoff)).toEqual([1000, 2000, 4000, 4000, 4000, 4000]);
    random.mockReturnValue(0.5);
    expect(attempts.map(backoff)).toEqual([950, 1900, 3800, 3800, 3800, 3800]);
  });

  test.each([
    { minMs: -1, maxMs: 5 },
    { minMs: 10, maxMs: 5 },
    { minMs: -0.5, maxMs: 5 },
    { minMs: NaN, maxMs: 5 },
    { minMs: 1, maxMs: Infinity },
    { minMs: 1, maxMs: DELAY_MS_MAX + 1 },
    { minMs: 1, maxMs: 5, factor: 0.5 },
    { minMs: 1, maxMs: 5, factor: NaN },
    { minMs: 1, maxMs: 5, jitter: 1.1 },
    { minMs: 1, maxMs: 5, jitter: -0.1 },
    { minMs: 1, maxMs: 5, jiter: 0.1 },
    { minMs: 1 } as never,
    undefined as never,
  ])("exponential backoff refuses %j", (options) => {
    expect(caught(() => exponential(options)).code).toBe("invalid_option");
  });
});

describe("fixed backoff", () => {
  test("fixed backoff gives the same delay every time", () => {
    expect(attempts.map(fixed(250))).toEqual([250, 250, 250, 250, 250, 250]);
    expect(attempts.map(fixed(249.5))).toEqual([250, 250, 250, 250, 250, 250]);
  });

  test.each([-1, -0.5, NaN, Infinity, "5" as never])("fixed backoff refuses %s", (ms) => {
    expect(caught(() => fixed(ms)).code).toBe("invalid_option");
  });
});

describe("the delay after an attempt", () => {
  test.each([
    [0, 0],
    [-5, 0],
    [-Infinity, 0],
    [10.4, 10],
    [1e300, DELAY_MS_MAX],
    [Infinity, DELAY_MS_MAX],
  ])("a delay of %d is used as %d", (answer, delayMs) => expect(delayFor(() => answer, 1)).toBe(delayMs));

  test.each<[string, Backoff]>([
    ["throws", () => fail()],
    ["returns NaN", () => NaN],
    ["returns nothing", () => undefined as never],
    ["returns text", () => "100" as never],
    ["returns a BigInt", () => 100n as never],
    ["returns a promise", () => Promise.resolve(1) as never],
  ])("the delay falls back to the default if the backoff function %s", (_, backoff) => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    expect([1, 2, 7].map((attempt) => delayFor(backoff, attempt))).toEqual([1000, 2000, 60_000]);
  });
});

describe("a retry policy", () => {
  test("a retry policy has five attempts from 1 s to 60 s by default", () => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const policy = resolveRetry();
    expect(policy.attempts).toBe(5);
    expect([1, 2, 7].map(policy.backoff)).toEqual([1000, 2000, 60_000]);
    expect(resolveRetry({ attempts: 32_000 }).attempts).toBe(32_000);
  });

  test.each([
    { attempts: 0 },
    { attempts: -1 },
    { attempts: 1.5 },
    { attempts: NaN },
    { attempts: 32_768 },
    { attempts: null as never },
    { backoff: 1000 as never },
    { atempts: 5 } as never,
    null as never,
    5 as never,
  ])("a retry policy refuses %j", (policy) => {
    expect(caught(() => resolveRetry(policy)).code).toBe("invalid_option");
  });
});

function fail(): never {
  throw new Error("no");
}
