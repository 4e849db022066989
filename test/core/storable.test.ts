import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { storable } from "../../src/core/json.js";
import { hostile, loneHigh, loneLow, nested, nul, unstorable } from "./caught.js";

const MAX = 65_536;
const circular: Record<string, unknown> = { n: 1 };
circular.self = circular;
const shared = { a: 1 };
const throwing = {
  ok: 1,
  get bad(): never {
    throw new Error("no");
  },
};

describe("the stored form of a result", () => {
  test.each<[string, unknown, unknown]>([
    ["nothing", undefined, null],
    ["plain data as it is", { a: [1, "x", null, true] }, { a: [1, "x", null, true] }],
    ["NUL", nul, "a\ufffdb"],
    ["lone surrogates, also in keys", { [loneHigh]: loneLow }, { "a\ufffdb": "a\ufffdb" }],
    ["whole pairs as they are", "😀", "😀"],
    ["an escape that is only text", "\\u0000", "\\u0000"],
    ["a BigInt", { a: 12345678901234567890n }, { a: "12345678901234567890" }],
    ["a circle", circular, { n: 1, self: "[circular]" }],
    ["the same object twice, which is no circle", [shared, shared, 1n], [shared, shared, "1"]],
    ["a function", () => 1, "[function]"],
    ["a symbol", Symbol("a"), "[symbol]"],
    ["what JSON leaves out", { a: 1n, f: () => 1, u: undefined, l: [undefined] }, { a: "1", l: [null] }],
    ["a throwing getter", throwing, { ok: 1, bad: "[unserialisable]" }],
    ["a hostile proxy", { a: hostile() }, { a: "[unserialisable]" }],
    ["a toJSON that throws", { toJSON: () => fail() }, "[unserialisable]"],
    ["a toJSON that gives a circle", { toJSON: () => circular }, { n: 1, self: "[circular]" }],
    ["a date beside a BigInt", [new Date(0), 1n], ["1970-01-01T00:00:00.000Z", "1"]],
    ["an invalid date", new Date(NaN), null],
  ])("a result is stored: %s", (_, value, expected) => expect(JSON.parse(storable(value, MAX))).toEqual(expected));

  test("a __proto__ key is stored like any other key", () => {
    const text = storable(Object.defineProperty({ n: 1n }, "__proto__", { value: 2n, enumerable: true }), MAX);
    expect(text).toBe('{"n":"1","__proto__":"2"}');
  });

  test.each([1001, 5000, 100_000])("a result nested %d levels deep is cut at 1,000", (levels) => {
    const text = storable(nested(levels), MAX);
    expect(text).toBe("[".repeat(1000) + '"[nested too deep]"' + "]".repeat(1000));
  });

  test("a result that is too large becomes a note with its size and a preview", () => {
    const note = JSON.parse(storable("x".repeat(100_000), MAX)) as Record<string, unknown>;
    expect(note).toMatchObject({ truncated: true, bytes: 100_002 });
    expect(note.preview).toMatch(/^"x+…$/);
  });

  test("the note of a truncated result is written as no value with the same fields is", () => {
    const note = storable("x".repeat(100_000), MAX);
    expect(note.startsWith('{ "truncated":true,"bytes":100002,')).toBe(true);
    expect(storable(JSON.parse(note), MAX)).toBe(note.replace("{ ", "{"));
  });

  test("a graph that expands without bound and is not JSON is cut off", () => {
    let value: unknown = { n: 1n };
    for (let i = 0; i < 60; i++) value = { b: 1n, left: value, right: value };
    expect(JSON.parse(storable(value, 1000))).toMatchObject({ truncated: true });
  });
});

describe("any result", () => {
  const texts = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(nul, loneHigh, loneLow, "\\\0"));
  const values = fc.anything({
    key: texts,
    values: [texts, fc.bigInt(), fc.double(), fc.constant(circular), fc.constant(throwing)],
    withBigInt: true,
    withBoxedValues: true,
    withMap: true,
    withNullPrototype: true,
    withSparseArray: true,
    withTypedArray: true,
  });

  test("the stored text of any result parses, fits, and contains nothing that PostgreSQL refuses", () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 64, max: 4096 }), (value, bytesMax) => {
        const text = storable(value, bytesMax);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytesMax);
        expect(storableAll(JSON.parse(text))).toBe(true);
        expect(unstorable(text)).toBe(false);
      }),
    );
  });

  test("a result that is valid JSON is stored unchanged", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        expect(storable(value, 1e9)).toBe(JSON.stringify(value));
      }),
    );
  });
});

function fail(): never {
  throw new Error("no");
}

function storableAll(value: unknown): boolean {
  if (typeof value === "string") return !unstorable(value);
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, item]) => !unstorable(key) && storableAll(item));
}
