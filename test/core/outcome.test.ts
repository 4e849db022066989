import { describe, expect, test } from "vitest";
import {
  CancelOutcome,
  FatalError,
  SnoozeOutcome,
  cancel,
  classify,
  fail,
  isOutcome,
  snooze,
} from "../../src/core/outcome.js";
import { caught, hostile, nul } from "./caught.js";

describe("the classification of thrown values", () => {
  test("cancel() ends the task, with or without a reason", () => {
    expect(classify(cancel())).toEqual({ kind: "cancel", reason: null });
    expect(classify(cancel("account closed"))).toEqual({
      kind: "cancel",
      reason: "account closed",
    });
  });

  test("snooze() runs the task again later", () => {
    expect(classify(snooze(5_000))).toEqual({ kind: "snooze", delayMs: 5_000 });
    expect(classify(snooze(0))).toEqual({ kind: "snooze", delayMs: 0 });
  });

  test("fail() and every FatalError are failures without a retry", () => {
    class Gone extends FatalError {}
    for (const error of [fail("no account"), new FatalError("no account"), new Gone("no account")]) {
      expect(classify(error)).toEqual({ kind: "fail", error, final: true });
      expect(isOutcome(error)).toBe(true);
    }
  });

  test("any other thrown value is a failure", () => {
    const like = { name: "SnoozeOutcome", delayMs: 5 };
    for (const error of [undefined, null, "cancel", new Error("x"), like, hostile()]) {
      const outcome = classify(error);
      expect(outcome.kind).toBe("fail");
      expect(outcome).toMatchObject({ final: false });
      expect(outcome.kind === "fail" && outcome.error === error).toBe(true);
    }
  });
});

describe("cancel() and snooze()", () => {
  test("an outcome is an Error without a stack trace", () => {
    const limit = Error.stackTraceLimit;
    for (const outcome of [cancel("x"), snooze(1)]) {
      expect(outcome).toBeInstanceOf(Error);
      expect(outcome.stack ?? "").not.toContain("\n    at ");
    }
    expect(cancel()).toBeInstanceOf(CancelOutcome);
    expect(snooze(1)).toBeInstanceOf(SnoozeOutcome);
    expect(Error.stackTraceLimit).toBe(limit);
  });

  test("fail() is an error with its reason, its cause and the stack of its caller", () => {
    const error = fail("no account");
    expect(error).toBeInstanceOf(FatalError);
    expect(error).toMatchObject({ name: "FatalError", message: "no account" });
    expect(error.stack).toMatch(/\n    at .*outcome\.test\.ts/);
    const cause = new TypeError("404");
    expect(fail(cause)).toMatchObject({ message: "404", cause });
    expect(fail({} as never).message).toBe("an object");
    expect(fail(hostile() as never)).toBeInstanceOf(FatalError);
  });

  test("cancel() makes its reason storable and short", () => {
    expect(cancel(nul).reason).toBe("a\ufffdb");
    expect(cancel("x".repeat(1e6)).reason?.length).toBeLessThanOrEqual(1024);
    expect(cancel({} as never).reason).toBe("an object");
  });

  test.each([
    [40814.87, 40815],
    [0.2, 0],
    [1e-9, 0],
  ])("snooze() rounds %d ms to %d ms", (ms, delayMs) => {
    expect(classify(snooze(ms))).toEqual({ kind: "snooze", delayMs });
  });

  test.each([-1, -0.2, NaN, Infinity, 1e15, "5" as never, undefined as never])("snooze() refuses %s", (ms) =>
    expect(caught(() => snooze(ms)).code).toBe("invalid_option"),
  );
});
