import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SluiceError } from "../../src/core/error.js";
import { describeError } from "../../src/core/json.js";
import { hostile, nul, unstorable } from "./caught.js";

const circular: Record<string, unknown> = {};
circular.self = circular;

describe("the description of a thrown value", () => {
  test("an error is described by name, message, code, frames and cause", () => {
    const error = new SluiceError("timeout", "too slow", { cause: new TypeError("why") });
    const { stack, ...rest } = describeError(error);
    expect(rest).toEqual({
      name: "SluiceError",
      message: "too slow",
      code: "timeout",
      cause: "TypeError: why",
    });
    expect(stack).toMatch(/^ {4}at /);
    expect(stack).not.toContain("too slow");
  });

  test("an aggregate error is described by its first error", () => {
    const error = new AggregateError([new Error("refused"), new Error("other")], "");
    expect(describeError(error)).toMatchObject({ name: "AggregateError", cause: "Error: refused" });
  });

  test.each<[string, unknown, { name: string; message: string }]>([
    ["undefined", undefined, { name: "NonError", message: "undefined" }],
    ["null", null, { name: "NonError", message: "null" }],
    ["a text", "boom", { name: "NonError", message: "boom" }],
    ["an empty text", "", { name: "NonError", message: "" }],
    ["a number", 42, { name: "NonError", message: "42" }],
    ["a BigInt", 1n, { name: "NonError", message: "1n" }],
    ["a symbol", Symbol("a"), { name: "NonError", message: "a symbol" }],
    ["a function", () => 1, { name: "NonError", message: "a function" }],
    ["an object", { a: 1 }, { name: "NonError", message: '{"a":1}' }],
    ["a circle", circular, { name: "NonError", message: '{"self":"[circular]"}' }],
    ["something like an error", { message: nul }, { name: "Error", message: "a\ufffdb" }],
  ])("a thrown value is described: %s", (_, thrown, expected) => expect(describeError(thrown)).toEqual(expected));

  test("a proxy that throws on every access has a description", () => {
    expect(describeError(hostile())).toEqual({ name: "NonError", message: '"[unserialisable]"' });
  });

  test("a numeric error code is described as text", () => {
    expect(describeError(Object.assign(new Error("x"), { code: 7 })).code).toBe("7");
  });

  test("an error whose every property throws has a description", () => {
    const error = new Error("x");
    const get = () => {
      throw new Error("no");
    };
    // The stack first: V8 writes it when it is touched, and would read the name for it.
    for (const key of ["stack", "name", "message", "cause", "code"]) {
      Object.defineProperty(error, key, { get });
    }
    expect(describeError(error).name).toBe("NonError");
  });

  test.each([
    ["letters", "x"],
    ["control characters", "\u0001"],
    ["emoji", "😀"],
    ["NUL", "\0"],
  ])("a message of 10 MB of %s is cut to size, and the frames are kept", (_, unit) => {
    const error = new Error(unit.repeat(10_000_000 / unit.length), { cause: unit.repeat(1e6) });
    const described = describeError(error);
    expect(Buffer.byteLength(JSON.stringify(described))).toBeLessThanOrEqual(8192);
    expect(described.message.length).toBeGreaterThan(400);
    expect(described.stack).toMatch(/^ {4}at /);
  });
});

test("the description of any thrown value is bounded and storable", () => {
  const texts = fc.string({ unit: "binary", maxLength: 3000 });
  const fields = { name: fc.anything(), message: texts, stack: texts, code: texts, cause: texts };
  const thrown = fc.oneof(fc.anything(), texts, fc.record(fields, { requiredKeys: [] }));
  fc.assert(
    fc.property(thrown, fc.integer({ min: 512, max: 8192 }), (value, bytesMax) => {
      const described = describeError(value, bytesMax);
      expect(Buffer.byteLength(JSON.stringify(described))).toBeLessThanOrEqual(bytesMax);
      expect(Object.values(described).some((text) => unstorable(text))).toBe(false);
    }),
  );
});
