import { describe, expect, test } from "vitest";
import { checkInteger, checkMs, checkNumber } from "../../src/core/number.js";
import { caught } from "./caught.js";

const range = { min: 0, max: 10 };
const never = [NaN, Infinity, -Infinity, -1, 11, 1e300, -1e300, "5", "", null, undefined, 5n, {}, [], [5], true];

describe("integer options", () => {
  test.each([0, 1, 10])("an integer option may be %d", (value) => expect(checkInteger("x", value, range)).toBe(value));

  test("an integer option turns negative zero into zero", () => {
    expect(Object.is(checkInteger("x", -0, range), 0)).toBe(true);
  });

  test.each([...never, 0.5, 9.999])("an integer option is refused if it is %s", (value) => {
    const error = caught(() => checkInteger("pollMs", value, range));
    expect(error.code).toBe("invalid_option");
    expect(error.message).toMatch(/^pollMs must be an integer from 0 to 10, not ./);
    expect(error.details).toMatchObject({ option: "pollMs" });
  });
});

describe("durations in ms", () => {
  test.each([
    [0, 0],
    [0.4, 0],
    [0.5, 1],
    [9.99, 10],
    [-0, 0],
  ])("a duration of %d ms is used as %d ms", (value, ms) => expect(checkMs("x", value, range)).toBe(ms));

  test.each([...never, -0.1, 10.1])("a duration is refused if it is %s", (value) =>
    expect(caught(() => checkMs("x", value, range))).toMatchObject({ code: "invalid_option" }),
  );
});

describe("number options", () => {
  test.each([0, 0.5, 10])("a number option may be %d", (value) => expect(checkNumber("x", value, range)).toBe(value));

  test.each(never)("a number option is refused if it is %s", (value) =>
    expect(caught(() => checkNumber("x", value, range)).code).toBe("invalid_option"),
  );
});
