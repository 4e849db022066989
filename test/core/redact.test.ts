import { describe, expect, test } from "vitest";
import { REDACTED, redactOf } from "../../src/core/redact.js";

describe("redact", () => {
  test("hides common names of secrets at any depth, however they are written", () => {
    const input = { password: "x", user: { api_key: "k", "Set-Cookie": "c", name: "ada" }, list: [{ accessToken: 1 }] };
    expect(redactOf(undefined)(input)).toEqual({
      password: REDACTED,
      user: { api_key: REDACTED, "Set-Cookie": REDACTED, name: "ada" },
      list: [{ accessToken: REDACTED }],
    });
  });

  test.each<[string, unknown, unknown]>([
    ["a.b", { a: { b: 1, c: 2 }, b: 3 }, { a: { b: REDACTED, c: 2 }, b: 3 }],
    ["b", { a: { b: 1 }, b: 3 }, { a: { b: 1 }, b: REDACTED }],
    ["*.b", { a: { b: 1 }, b: 3 }, { a: { b: REDACTED }, b: REDACTED }],
    ["list.*.n", { list: [{ n: 1 }, { n: 2 }] }, { list: [{ n: REDACTED }, { n: REDACTED }] }],
    ["*.a.b", { x: { a: { b: 1 } }, b: 2 }, { x: { a: { b: REDACTED } }, b: 2 }],
    ["*", { a: 1, b: { c: 2 } }, { a: REDACTED, b: REDACTED }],
  ])("the path %s hides what it names and nothing else", (path, input, seen) => {
    expect(redactOf([path])(input)).toEqual(seen);
  });

  test("a function decides by path and value, and one that throws hides", () => {
    const long = redactOf([(_, value) => typeof value === "string" && value.length > 3]);
    expect(long({ a: "long text", b: "no" })).toEqual({ a: REDACTED, b: "no" });
    const broken = redactOf([
      () => {
        throw new Error("wrong");
      },
    ]);
    expect(broken({ a: 1 })).toEqual({ a: REDACTED });
  });

  test("a value without keys is returned as it is, and false hides nothing", () => {
    expect(redactOf(undefined)("text")).toBe("text");
    expect(redactOf(undefined)(null)).toBeNull();
    expect(redactOf(false)({ password: "x" })).toEqual({ password: "x" });
  });

  test.each([[[""]], [["a..b"]], [[1]], ["a"], [[".a"]], [Array.from({ length: 101 }, () => "a")]])(
    "refuses %j",
    (option) => {
      expect(() => redactOf(option as never)).toThrow(/redact must be false or a list/);
    },
  );
});
