import { type as ark } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { isSchema, noInput, type, validate, type Schema } from "../../src/core/schema.js";
import { caught } from "./caught.js";

const schemas: [string, Schema][] = [
  ["zod", z.object({ id: z.string() })],
  ["valibot", v.object({ id: v.string() })],
  ["arktype", ark({ id: "string" })],
];

describe.each(schemas)("a schema of %s", (_, schema) => {
  test("a schema is recognised and returns its output synchronously", () => {
    expect(isSchema(schema)).toBe(true);
    expect(validate(schema, { id: "a" })).toEqual({ id: "a" });
  });

  test("a schema reports what is wrong and where", () => {
    const error = caught(() => validate(schema, { id: 5 }));
    expect(error.code).toBe("input_invalid");
    expect(error.message).toMatch(/^the input is not valid: id: ./);
    expect(error.details?.issues).toMatchObject([{ path: "id" }]);
  });
});

describe("the validation of an input", () => {
  test("validation waits for an asynchronous schema", async () => {
    const schema = z.string().refine((text) => Promise.resolve(text === "a"), "not a");
    const good = validate(schema, "a");
    expect(good).toBeInstanceOf(Promise);
    await expect(good).resolves.toBe("a");
    await expect(validate(schema, "b")).rejects.toMatchObject({ code: "input_invalid" });
  });

  test("validation reports an invalid input if the schema throws or rejects", async () => {
    const cause = new Error("broken");
    const throws = schemaOf(() => {
      throw cause;
    });
    const rejects = schemaOf(() => Promise.reject(cause));
    expect(caught(() => validate(throws, 1))).toMatchObject({ code: "input_invalid", cause });
    await expect(validate(rejects, 1)).rejects.toMatchObject({ code: "input_invalid", cause });
  });

  test("validation reports a bounded number of issues as storable text", () => {
    const issues = Array.from({ length: 100_000 }, () => ({
      message: "\0" + "x".repeat(1000),
      path: ["a", { key: 0 }, Symbol("s")],
    }));
    const error = caught(() =>
      validate(
        schemaOf(() => ({ issues })),
        1,
      ),
    );
    expect(error.message).toMatch(/^the input is not valid: a\.0\.Symbol\(s\): \ufffdx.*\(and 99999 more\)$/);
    expect(JSON.stringify(error.details).length).toBeLessThan(20_000);
  });

  test.each<[string, Schema, string]>([
    ["zod", z.object({ at: z.date() }), "use z.coerce.date()"],
    ["valibot", v.object({ at: v.date() }), "let the schema parse them"],
    ["arktype", ark({ at: "Date" }), "let the schema parse them"],
  ])("validation hints that a date arrives as a string if a schema of %s wants a Date", (_, schema, remedy) => {
    const hint = `inputs are JSON: dates arrive as strings; ${remedy}`;
    const refused = caught(() => validate(schema, { at: "2020-01-01T00:00:00.000Z" }));
    expect(refused.message).toMatch(/^the input is not valid: at: ./);
    expect(refused.message.endsWith(`; ${hint}`)).toBe(true);
    expect(refused.details).toMatchObject({ hint });
    for (const at of [5, null, {}]) {
      const other = caught(() => validate(schema, { at }));
      expect(other.message).not.toContain("coerce");
      expect(other.details).not.toHaveProperty("hint");
    }
  });

  test("validation gives no hint if a schema wants text that is a date", () => {
    expect(caught(() => validate(z.object({ at: z.iso.date() }), { at: "x" })).message).not.toContain("arrive");
    expect(caught(() => validate(z.object({ at: z.iso.datetime() }), { at: "x" })).message).not.toContain("arrive");
  });

  test("type() accepts any value, and a task without a schema accepts only undefined and null", () => {
    expect(validate(type<string>(), 5)).toBe(5);
    expect(validate(noInput, undefined)).toBeUndefined();
    expect(validate(noInput, null)).toBeUndefined();
    expect(caught(() => validate(noInput, {})).code).toBe("input_invalid");
  });

  test.each([undefined, null, "a", {}, { "~standard": 5 }, { "~standard": {} }])("%j is not a schema", (value) =>
    expect(isSchema(value)).toBe(false),
  );
});

function schemaOf(check: Schema["~standard"]["validate"]): Schema {
  return { "~standard": { version: 1, vendor: "test", validate: check } };
}
