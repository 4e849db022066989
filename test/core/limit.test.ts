import { describe, expect, test } from "vitest";
import { limit, toUse } from "../../src/core/limit.js";
import { caught } from "./caught.js";

const mail = limit("mail", { total: 50 });
const tenant = limit("tenant", { perKey: 5 });

describe("the declaration of a limit", () => {
  test.each([
    [{ total: 50 }, 50, undefined],
    [{ total: 0 }, 0, undefined],
    [{ total: null }, null, undefined],
    [{ total: 2_000_000_000 }, 2_000_000_000, undefined],
    [{ total: 1, perKey: undefined }, 1, undefined],
  ])("a limit may be declared as %j", (shape, total, perKey) => {
    expect(limit("x", shape)).toMatchObject({ name: "x", total, perKey });
  });

  test.each([
    [{ perKey: 5 }, undefined, 5],
    [{ perKey: null }, undefined, null],
    [{ perKey: 5, total: 50 }, 50, 5],
    [{ perKey: 5, total: null }, null, 5],
  ])("a limit per key may be declared as %j", (shape, total, perKey) => {
    expect(limit("x", shape)).toMatchObject({ name: "x", total, perKey });
  });

  test.each([
    {},
    { total: -1 },
    { total: 0.5 },
    { total: NaN },
    { total: Infinity },
    { total: 2_000_000_001 },
    { total: "5" },
    { perKey: -1 },
    { total: 1, perKey: 1.5 },
    { total: 1, per_key: 1 },
    null,
    undefined,
    5,
  ])("a limit declared as %j is refused", (shape) => {
    expect(caught(() => limit("x", shape as never)).code).toBe("invalid_option");
  });

  test("a limit's name is validated, and __proto__ is a valid name", () => {
    expect(caught(() => limit("", { total: 1 })).code).toBe("invalid_name");
    expect(limit("__proto__", { total: 1 }).name).toBe("__proto__");
  });

  test("a declared limit is immutable", () => {
    expect(() => Object.assign(mail, { total: 1 })).toThrow(TypeError);
    expect(mail.total).toBe(50);
  });
});

describe("the use of a limit", () => {
  test("a limit without keys is used as it is", () => {
    expect(toUse(mail)).toMatchObject({ limit: mail, key: null });
  });

  test.each([
    ["acme", "acme"],
    [7, "7"],
    [7n, "7"],
  ])("a limit per key accepts %s as a key", (key, text) => {
    expect(tenant.for(key)).toMatchObject({ limit: tenant, key: text });
  });

  test("a limit per key keeps a key function for later", () => {
    const keyOf = (input: { id: string }) => input.id;
    expect(tenant.for(keyOf).key).toBe(keyOf);
    expect(toUse({ limit: tenant, key: keyOf })).toMatchObject({ limit: tenant, key: keyOf });
  });

  test.each([undefined, null])("a limit per key used with the key %s is refused with key_missing", (key) => {
    expect(caught(() => tenant.for(key as never)).code).toBe("key_missing");
  });

  test("a limit per key used without a key is refused with key_missing", () => {
    expect(caught(() => toUse(tenant)).code).toBe("key_missing");
    expect(caught(() => toUse({ limit: tenant, key: null })).code).toBe("key_missing");
    expect(caught(() => toUse({ limit: tenant })).code).toBe("key_missing");
    expect(caught(() => toUse(tenant)).message).toContain("{ limit, key: (input) => ... } or limit.for(key)");
    expect(caught(() => tenant.for(undefined as never)).message).toMatch(
      /^limit tenant needs a key: .+, not limit.for\(undefined\)$/,
    );
  });

  test.each(["", "a\u0000", 1.5, {}, "x".repeat(513)])("a limit per key refuses %j as a key", (key) => {
    expect(caught(() => tenant.for(key as never)).code).toBe("invalid_key");
  });

  test("a limit that was declared without keys refuses a key", () => {
    const withFor = mail as unknown as typeof tenant;
    expect(caught(() => withFor.for("acme")).code).toBe("limit_shape");
    expect(caught(() => toUse({ limit: mail, key: "acme" })).code).toBe("limit_shape");
  });

  test.each([undefined, null, "mail", {}, { limit: "mail", key: "a" }])(
    "%j is refused as the use of a limit",
    (entry) => {
      expect(caught(() => toUse(entry)).code).toBe("invalid_option");
    },
  );
});
