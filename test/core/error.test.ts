import { describe, expect, test } from "vitest";
import { SluiceError, isSluiceError } from "../../src/core/error.js";
import { hostile } from "./caught.js";

describe("SluiceError", () => {
  test("SluiceError carries a code, a cause and details", () => {
    const cause = new Error("why");
    const error = new SluiceError("timeout", "too slow", { cause, details: { ms: 5 } });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: "SluiceError", code: "timeout", details: { ms: 5 } });
    expect(error.message).toBe("too slow");
    expect(error.cause).toBe(cause);
  });

  test("SluiceError has no cause and no details unless they are given", () => {
    const error = new SluiceError("timeout", "too slow");
    expect("cause" in error).toBe(false);
    expect(error.details).toBeUndefined();
  });

  test("SluiceError is recognised by its code, whatever else is caught", () => {
    const error = new SluiceError("timeout", "too slow");
    expect(isSluiceError(error)).toBe(true);
    expect(isSluiceError(error, "timeout")).toBe(true);
    expect(isSluiceError(error, "poisoned")).toBe(false);
    for (const other of [undefined, null, "timeout", new Error("timeout"), hostile()]) {
      expect(isSluiceError(other)).toBe(false);
    }
  });
});
