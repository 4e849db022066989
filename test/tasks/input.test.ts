import { type as ark } from "arktype";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { limit, task, type } from "../../src/index.js";
import { openHouse, refused, type House } from "../client/house.js";
import { hostile, loneHigh, loneLow, nested, nul } from "../core/caught.js";

const echo = task("echo", { input: type<unknown>() });
let house: House;
beforeAll(async () => {
  house = await openHouse();
  await house.work([echo.handle((input) => input)]);
});
afterAll(() => house.close());

/** The input that the handler received, returned as the result. */
async function roundTrip(input: unknown): Promise<unknown> {
  const handle = await house.sluice.enqueue(echo, input);
  return handle.result({ timeoutMs: 10_000 });
}

describe("a refused payload", () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = { circle };
  const notSerialisable: [string, unknown][] = [
    ["a circle", circle],
    ["a BigInt", { a: [1n] }],
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["a toJSON that throws", { toJSON: () => Object.keys(hostile()) }],
    ["a toJSON that returns nothing", { toJSON: () => undefined }],
    ["an object that throws whatever is done to it", [hostile()]],
    ["a nesting too deep for the stack", nested(200_000)],
  ];
  test.each(notSerialisable)("a payload that is or contains %s is refused", async (_, input) => {
    await refused(house, "input_not_serialisable", () => house.sluice.enqueue(echo, input));
    expect(await roundTrip("fine")).toBe("fine");
  });

  const notStorable: [string, unknown][] = [
    ["a NUL", nul],
    ["a NUL in a key", { [nul]: 1 }],
    ["a NUL after escaped backslashes", ["\\\\\u0000"]],
    ["half a surrogate pair", { text: loneHigh }],
    ["the other half", [loneLow]],
    ["halves in the wrong order", "\udc00\ud800"],
    ["1,001 levels", nested(1001)],
  ];
  test.each(notStorable)("a payload with %s is refused", async (_, input) => {
    await refused(house, "input_not_storable", () => house.sluice.enqueue(echo, input));
    expect(await roundTrip("fine")).toBe("fine");
  });

  test("a payload that is too large in bytes is refused", async () => {
    const max = 1024 * 1024;
    for (const text of ["a".repeat(max - 1), "ü".repeat(max / 2), "😀".repeat(max / 4)]) {
      await refused(house, "input_too_large", () => house.sluice.enqueue(echo, text));
    }
    expect(await roundTrip("a".repeat(max - 2))).toHaveLength(max - 2);
  });

  test("a payload larger than payloadBytesMax is refused", async () => {
    const small = await openHouse({ payloadBytesMax: 10 });
    await refused(small, "input_too_large", () => small.sluice.enqueue(echo, "123456789"));
    await small.sluice.enqueue(echo, "12345678");
    expect(await small.tasks()).toBe(1);
    await small.close();
  });

  test("a payload refused in enqueueMany or in a transaction leaves the transaction usable", async () => {
    const tx = await house.begin();
    await refused(house, "input_not_storable", () => house.sluice.enqueueMany(echo, ["a", nul, "b"]));
    await refused(house, "input_not_storable", () => house.sluice.enqueue(echo, nul, { tx }));
    const kept = await house.sluice.enqueue(echo, "kept", { tx });
    await tx.query("commit");
    tx.release();
    expect(await kept.result({ timeoutMs: 10_000 })).toBe("kept");
  });
});

describe("an accepted payload", () => {
  const own = JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": 1}}');
  test.each<[string, unknown]>([
    ["__proto__ and constructor as keys", own],
    ["separators of our own making", { "\u001e\u001f": "\u001e,\u001f\u0001\u007f\u0085" }],
    ["quotes, braces and SQL", `'"{}[]\\,$1 $$; drop table sluice.task; --`],
    ["all of Unicode that can be stored", "ü漢字😀\u200b\ufeff\uffff\u{10ffff}\u2028"],
    ["a thousand levels", nested(1000)],
    ["odd numbers", [0, -0.5, 1e308, 5e-324, Number.MAX_SAFE_INTEGER, 123456789012345680000]],
    ["nothing at all", null],
    ["empty things", ["", {}, [], 0, false, null]],
    ["an escaped escape", "\\u0000 \\ud800"],
  ])("a payload arrives unchanged: %s", async (_, input) => {
    const back = await roundTrip(input);
    expect(back).toEqual(input);
    expect(JSON.stringify(back)).toBe(JSON.stringify(input));
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("a payload of megabytes arrives unchanged where it is allowed", async () => {
    const big = await openHouse({ payloadBytesMax: 8_000_000, resultBytesMax: 8_000_000 });
    await big.work([echo.handle((input) => input)]);
    const input = Array.from({ length: 20_000 }, (_, i) => ({ i, text: "x".repeat(100) }));
    const handle = await big.sluice.enqueue(echo, input);
    expect(await handle.result({ timeoutMs: 20_000 })).toEqual(input);
    await big.close();
  });
});

describe("the schema validates the stored form of an input", () => {
  test("order and limits see a Date of a type() as the text that the handler receives", async () => {
    const seen: unknown[] = [];
    const dated = task("dated-order", {
      input: type<{ at: Date }>(),
      order: ({ at }) => {
        seen.push(at);
        return at;
      },
      limits: [{ limit: limit("day", { perKey: 1 }), key: ({ at }) => at.slice(0, 10) }],
    });
    const at = new Date("2020-01-02T03:04:05Z");
    await house.sluice.enqueue(dated, { at });
    await house.sluice.enqueueMany(dated, [{ at }]);
    expect(seen).toEqual(["2020-01-02T03:04:05.000Z", "2020-01-02T03:04:05.000Z"]);
  });

  test("a Date for z.date() is refused at enqueue, because the worker would receive text", async () => {
    const dated = task("dated", { input: z.object({ at: z.date() }) });
    await refused(house, "input_invalid", () => house.sluice.enqueue(dated, { at: new Date() }));
  });

  test("a Date for z.coerce.date() is a Date again in order, limits and handler", async () => {
    const seen: unknown[] = [];
    const coerced = task("coerced", {
      input: z.object({ at: z.coerce.date(), n: z.number().default(7) }),
      order: (i) => {
        seen.push(i.at);
        return i.at.getTime();
      },
    });
    const worker = await house.work([coerced.handle((i) => [i.at instanceof Date, i.n])]);
    const at = new Date("2020-02-03T04:05:06.789Z");
    const handle = await house.sluice.enqueue(coerced, { at });
    expect(await handle.result({ timeoutMs: 10_000 })).toEqual([true, 7]);
    expect(seen).toEqual([at]);
    await worker.stop();
  });

  test("a value that JSON drops counts as missing, and a value that JSON adds counts as present", async () => {
    const strict = task("strict", { input: z.strictObject({ n: z.number() }) });
    const bad: unknown[] = [{ n: undefined }, { n: 1, toJSON: () => ({ n: "1" }) }, { n: 1, more: 2 }];
    for (const input of bad) {
      await refused(house, "input_invalid", () => house.sluice.enqueue(strict, input as never));
    }
    await house.sluice.enqueue(strict, { n: 1, more: undefined } as never);
  });

  test.each([
    ["zod", z.object({ id: z.string() })],
    ["valibot", v.object({ id: v.string() })],
    ["arktype", ark({ id: "string" })],
  ])("a wrong input of %s is refused with its issues", async (name, schema) => {
    const checked = task(`checked-${name}`, { input: schema });
    const wrong = house.sluice.enqueue(checked, { id: 5 } as never);
    await expect(wrong).rejects.toMatchObject({
      code: "input_invalid",
      details: { issues: [{ path: "id" }] },
    });
    await refused(house, "input_invalid", () => house.sluice.enqueue(checked, null as never));
    expect((await house.sluice.enqueue(checked, { id: "a" })).id).toMatch(/^\d+$/);
  });

  test("enqueue waits for an asynchronous schema", async () => {
    const even = z.number().refine((n) => Promise.resolve(n % 2 === 0));
    const slow = task("slow", { input: even });
    await refused(house, "input_invalid", () => house.sluice.enqueue(slow, 1));
    await refused(house, "input_invalid", () => house.sluice.enqueueMany(slow, [2, 4, 1]));
    expect((await house.sluice.enqueueMany(slow, [2, 4])).count).toBe(2);
  });
});

describe("an input of undefined", () => {
  const optional = task("optional", { input: z.object({ a: z.number() }).optional() });
  const defaulted = task("defaulted", { input: z.string().default("by default") });
  const later = task("later", {
    input: z
      .string()
      .optional()
      .refine((text) => Promise.resolve(text !== "x")),
  });
  const nullable = task("nullable", { input: z.string().nullable() });
  const bare = task("bare");

  test("an undefined input reaches the handler of a schema that accepts it, although JSON stores null", async () => {
    const seen: unknown[] = [];
    const handlers = [optional, defaulted, later, nullable, bare].map((one) =>
      (one as typeof bare).handle((input) => void seen.push(input)),
    );
    const worker = await house.work(handlers);
    for (const enqueue of [
      () => house.sluice.enqueue(optional),
      () => house.sluice.enqueue(defaulted),
      () => house.sluice.enqueue(later),
      () => house.sluice.enqueue(nullable, null),
      () => house.sluice.enqueue(bare),
    ]) {
      await (await enqueue()).result({ timeoutMs: 10_000 });
    }
    expect(seen).toEqual([undefined, "by default", undefined, null, undefined]);
    await worker.stop();
  });

  test("an undefined input is refused by a schema that accepts neither undefined nor null", async () => {
    const wanted = task("wanted", { input: z.object({}) });
    await refused(house, "input_invalid", () => house.sluice.enqueue(wanted, undefined as never));
    await refused(house, "input_invalid", () => house.sluice.enqueue(bare, {} as never));
  });
});

test("a value that is not a task is refused with unknown_task", async () => {
  for (const bad of [undefined, null, "echo", {}, { type: "echo" }, () => echo, Symbol("echo")]) {
    await refused(house, "unknown_task", () => house.sluice.enqueue(bad as never));
    await refused(house, "unknown_task", () => house.sluice.enqueueMany(bad as never, []));
    await refused(house, "unknown_task", () => house.sluice.sync([bad as never]));
  }
  expect(await roundTrip("fine")).toBe("fine");
});
