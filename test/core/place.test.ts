import { describe, expect, test } from "vitest";
import { limit } from "../../src/core/limit.js";
import { type } from "../../src/core/schema.js";
import { task } from "../../src/core/task.js";
import { caught } from "./caught.js";

interface Input {
  id?: unknown;
}

const input = type<Input>();
const mail = limit("mail", { total: 50 });
const tenant = limit("tenant", { perKey: 5 });
const both = limit("both", { total: 50, perKey: 5 });
const byId = (i: Input) => i.id as string;

function ordered(order: unknown) {
  return task("t", { input, order: order as never });
}

function limited(limits: unknown) {
  return task("t", { input, limits: limits as never });
}

describe("the order key of an input", () => {
  test.each([
    [byId, { id: "a" }, "a"],
    [byId, { id: 5 }, "5"],
    [byId, { id: "__proto__" }, "__proto__"],
    [byId, {}, null],
    [byId, { id: null }, null],
    [{ key: byId }, { id: "a" }, "a"],
    [{ key: byId, scope: "account" }, { id: "a" }, "account\u001fa"],
    [{ key: byId, scope: "account" }, {}, null],
  ])("order %o with input %j gives the key %j", (order, value, key) => {
    expect(ordered(order).place(value).order).toBe(key);
  });

  test.each(["", "a\u001fb", "x".repeat(513), 1.5, {}, true])("an order key %j is refused", (id) => {
    expect(caught(() => ordered(byId).place({ id })).code).toBe("invalid_key");
  });

  test("an order function that throws is reported as an invalid input", () => {
    const cause = new Error("no");
    const throws = () => {
      throw cause;
    };
    expect(caught(() => ordered(throws).place({}))).toMatchObject({ code: "input_invalid", cause });
  });
});

describe("the limits of an input", () => {
  test("a task without limits has no limits for its input", () => {
    expect(task("t").place(undefined)).toEqual({ order: null, limits: [] });
  });

  test.each([
    ["a list", [tenant.for(byId), mail]],
    ["a list written out", [{ limit: tenant, key: byId }, mail]],
    ["a function", (i: Input) => [tenant.for(byId(i)), mail]],
    ["a function that leaves the key to a function", () => [tenant.for(byId), mail]],
  ])("the limits of an input come from %s", (_, limits) => {
    expect(limited(limits).place({ id: 7 }).limits).toEqual([
      { limit: tenant, key: "7" },
      { limit: mail, key: null },
    ]);
  });

  test("an input may use two keys of one limit that has no total", () => {
    const twice = [tenant.for("a"), tenant.for(byId)];
    expect(limited(twice).place({ id: "b" }).limits).toHaveLength(2);
  });

  test.each<[string, string, unknown]>([
    ["key_missing", "no key is found", [tenant.for(byId)]],
    ["key_missing", "the code gives no key", (i: Input) => [tenant.for(byId(i))]],
    ["key_missing", "the code forgets the key", () => [tenant]],
    ["duplicate_limit", "one limit comes twice", () => [mail, mail]],
    ["duplicate_limit", "one key comes twice", () => [tenant.for("a"), tenant.for("a")]],
    ["duplicate_limit", "one key comes twice, once as a number", () => [tenant.for(1), tenant.for("1")]],
    ["duplicate_limit", "a total would be passed twice", () => [both.for("a"), both.for("b")]],
    ["duplicate_limit", "two declarations share a name", () => [mail, limit("mail", { total: 1 })]],
    ["limit_shape", "they share a name but not a shape", () => [mail, limit("mail", { perKey: 1 }).for(1)]],
    ["invalid_key", "a key is empty", [tenant.for(() => "")]],
    ["invalid_option", "there are more than eight", () => Array.from({ length: 9 }, (_, i) => tenant.for(i))],
    ["invalid_option", "the code returns no list", () => mail],
    ["invalid_option", "the code returns a promise", () => Promise.resolve([mail])],
    ["invalid_option", "the code returns nothing", () => undefined],
    // oxlint-disable-next-line no-sparse-arrays -- the hole is what is tested
    ["invalid_option", "the list has a hole", () => [mail, , tenant.for("a")]],
    ["input_invalid", "a key function throws", [tenant.for((i: { no: { such: string } }) => i.no.such)]],
    ["input_invalid", "the code throws", (i: { no: { such: string } }) => [tenant.for(i.no.such)]],
  ])("the limits of an input are refused with %s if %s", (code, _, limits) => {
    expect(caught(() => limited(limits).place({})).code).toBe(code);
  });

  test("key_missing names the limit, the task and the key function", () => {
    const declared = caught(() => task("sync", { limits: [tenant] as never }));
    expect(declared).toMatchObject({ code: "key_missing", details: { limit: "tenant", task: "sync" } });
    expect(declared.message).toMatch(/^limit tenant needs a key in task "sync": list it as \{ limit, key/);
    const contract = task("sync", { input, limits: [{ limit: tenant, key: (i) => i.id as string }] });
    const placed = caught(() => contract.place({}));
    expect(placed).toMatchObject({ code: "key_missing", details: { limit: "tenant", task: "sync" } });
    expect(placed.message).toMatch(
      /^limit tenant needs a key: its key function in task "sync" returned undefined for this input: \(i\) ?=> ?i\.id$/,
    );
    const decided = caught(() => task("sync", { input, limits: (() => [tenant]) as never }).place({}));
    expect(decided).toMatchObject({ code: "key_missing", details: { limit: "tenant", task: "sync" } });
  });

  test("a limit with the task's own name beside its concurrency is refused", () => {
    const contract = task("mail", { concurrency: 5, limits: () => [mail] });
    const error = caught(() => contract.place(undefined));
    expect(error.code).toBe("duplicate_limit");
    expect(error.message).toMatch(/task "mail" has a concurrency.*another limit of that name/);
  });
});
