import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeInput } from "../../src/core/json.js";
import { isSluiceError } from "../../src/core/error.js";
import { caught, hostile, loneHigh, loneLow, nested, nul, unstorable } from "./caught.js";

const MAX = 1_048_576;
const circular: Record<string, unknown> = { a: { b: [0] } };
circular.self = { deep: [circular] };
const throwing = {
  toJSON() {
    throw new Error("no");
  },
};

describe("an accepted input", () => {
  test.each([
    [undefined, "null"],
    [null, "null"],
    [0, "0"],
    ["é😀", '"é😀"'],
    ["\\u0000", '"\\\\u0000"'],
    ["\\\\ud800", '"\\\\\\\\ud800"'],
    ["\u0001", '"\\u0001"'],
    [{ a: undefined, b: { c: undefined } }, '{"b":{}}'],
    [{ at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    [
      new (class Point {
        x = 1;
        #y = 2;
        sum = this.x + this.#y;
      })(),
      '{"x":1,"sum":3}',
    ],
    [{ b: Object.assign(Buffer.from("x"), { toJSON: () => "said so" }) }, '{"b":"said so"}'],
    [{ m: Object.assign(new Map(), { toJSON: () => ["said so"] }) }, '{"m":["said so"]}'],
    [Object.create(null), "{}"],
    [JSON.parse('{"__proto__":1,"constructor":2}'), '{"__proto__":1,"constructor":2}'],
    [{ "a\u001eb": 1 }, '{"a\\u001eb":1}'],
  ])("input %j is stored as %s", (value, text) => expect(encodeInput(value, MAX)).toBe(text));

  test("an input may be nested 1,000 levels deep", () => {
    expect(encodeInput(nested(1000), MAX)).toHaveLength(2001);
  });

  test("an input may contain many brackets side by side and inside strings", () => {
    const value = { wide: Array.from({ length: 5000 }, () => []), text: '[{"\\'.repeat(5000) };
    expect(JSON.parse(encodeInput(value, MAX))).toEqual(value);
  });

  test("an input may have exactly the allowed size, counted in bytes", () => {
    expect(encodeInput("é".repeat(4), 10)).toBe('"éééé"');
    expect(caught(() => encodeInput("é".repeat(4), 9)).code).toBe("input_too_large");
  });
});

describe("a refused input", () => {
  test.each([
    ["a BigInt", { a: [{ b: 1n }] }, "a BigInt at $.a[0].b"],
    ["a BigInt alone", 1n, "a BigInt at $"],
    ["a circle", circular, "a circular reference to $ at $.self.deep[0]"],
    ["a throwing toJSON", { a: throwing }, "a toJSON or a getter in it threw"],
    ["a hostile proxy", { a: hostile() }, "a toJSON or a getter in it threw"],
    ["a function", () => 1, "it is a function"],
    ["a symbol", Symbol("a"), "it is a symbol"],
    ["nothing from toJSON", { toJSON: () => undefined }, "toJSON returns undefined"],
    ["a bottomless nesting", nested(100_000), "nested too deep"],
    ["NaN", { a: [1, { b: NaN }] }, "NaN at $.a[1].b"],
    ["Infinity", [-Infinity], "-Infinity at $[0]"],
    ["an invalid Date", { at: new Date("soon") }, "an invalid Date at $.at"],
    ["a Buffer", [Buffer.from("x")], "binary data at $[0]"],
    ["a Map", { a: new Map([[1, 2]]) }, "a Map at $.a"],
    ["a Set", [[new Set()]], "a Set at $[0][0]"],
    ["an Error", { e: new TypeError("x") }, "an Error at $.e"],
    ["a promise that was not awaited", { p: Promise.resolve(1) }, "a Promise at $.p"],
    ["a RegExp", { r: /x/ }, "a RegExp at $.r"],
    ["binary data", { bytes: new Uint8Array(2) }, "binary data at $.bytes"],
    ["a method", { a: { go: () => 1 } }, "a function at $.a.go"],
    ["a symbol inside", { s: Symbol("x") }, "a symbol at $.s"],
    ["undefined in a list", { l: [1, undefined] }, "undefined in a list at $.l[1]"],
    // oxlint-disable-next-line no-sparse-arrays -- the hole is the point
    ["a hole in a list", [1, , 2], "undefined in a list at $[1]"],
    ["a key like any other", { __proto__: null, "a\nb": NaN }, "NaN at $.a\\nb"],
  ])("an input that cannot be serialised is refused: %s", (_, value, message) => {
    const error = caught(() => encodeInput(value, MAX));
    expect(error.code).toBe("input_not_serialisable");
    expect(error.message).toContain(message);
    const [, path] = / at (\$.*)$/.exec(error.message) ?? [];
    expect(error.details?.["path"]).toBe(path);
  });

  test.each([
    ["NUL", nul],
    ["NUL after an escaped backslash", "\\\u0000"],
    ["NUL in a key", { [nul]: 1 }],
    ["a lone high surrogate", [loneHigh]],
    ["a lone low surrogate", [loneLow]],
    ["a lone surrogate in a key", { a: { [loneLow]: 1 } }],
    ["surrogates the wrong way round", "\udc00\ud800"],
    ["1,001 levels", nested(1001)],
    ["1,001 levels of objects", JSON.parse('{"a":'.repeat(1001) + "1" + "}".repeat(1001))],
  ])("an input that cannot be stored is refused: %s", (_, value) => {
    expect(caught(() => encodeInput(value, MAX)).code).toBe("input_not_storable");
  });

  test("an input that is too large is refused with the sizes in the details", () => {
    const error = caught(() => encodeInput("x".repeat(100), 50));
    expect(error).toMatchObject({ code: "input_too_large", details: { bytes: 102, bytesMax: 50 } });
  });

  test("an input with a megabyte of backslashes and escapes is checked in linear time", () => {
    const value = "\\".repeat(300_000) + "\u0001".repeat(30_000) + "\u0000";
    const startedAt = performance.now();
    expect(caught(() => encodeInput(value, MAX)).code).toBe("input_not_storable");
    expect(performance.now() - startedAt).toBeLessThan(1000);
  });
});

describe("any input", () => {
  const texts = fc.string({ unit: "binary" });
  const pieces = fc.array(fc.constantFrom("\\", "u0000", "ud800", "\0", "\ud800", "\udc00", '"', "a"));
  const anyText = fc.oneof(
    texts,
    pieces.map((p) => p.join("")),
  );
  const values = fc.anything({ key: anyText, values: [anyText, fc.double(), fc.boolean()] });

  test("any input is stored as JSON.stringify writes it, or refused with a code", () => {
    fc.assert(
      fc.property(values, (value) => {
        try {
          const text = encodeInput(value, MAX);
          expect(text).toBe(value === undefined ? "null" : JSON.stringify(value));
          expect(hasUnstorable(JSON.parse(text))).toBe(false);
          if (hasNoToJSON(value)) expect(JSON.parse(text)).toEqual(value ?? null);
        } catch (e) {
          expect(isSluiceError(e)).toBe(true);
        }
      }),
    );
  });

  test("a string is refused exactly if PostgreSQL would refuse it", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        if (!unstorable(text)) expect(JSON.parse(encodeInput(text, MAX))).toBe(text);
        else expect(caught(() => encodeInput(text, MAX)).code).toBe("input_not_storable");
      }),
    );
  });
});

/** What fast-check calls anything has numbers that JSON rounds to 0, and boxes of its own. */
function hasNoToJSON(value: unknown): boolean {
  return !/"toJSON"|-0/.test(fc.stringify(value));
}

function hasUnstorable(value: unknown): boolean {
  if (typeof value === "string") return unstorable(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, item]) => unstorable(key) || hasUnstorable(item));
}
