import { describe, expect, test } from "vitest";
import { z } from "zod";
import { limit } from "../../src/core/limit.js";
import { exponential } from "../../src/core/retry.js";
import { type } from "../../src/core/schema.js";
import { task } from "../../src/core/task.js";
import { caught } from "./caught.js";

const mail = limit("mail", { total: 50 });

describe("the options of a task", () => {
  test("a task has default options", () => {
    expect(task("send")).toMatchObject({
      type: "send",
      queue: "default",
      priority: 0,
      attempts: 5,
      timeoutMs: 300_000,
      concurrency: null,
      ordered: false,
      orderBlocks: false,
      orderScope: null,
      limitList: [],
    });
  });

  test("a task keeps the options it is declared with", () => {
    const backoff = exponential({ minMs: 1, maxMs: 2 });
    const contract = task("send", {
      input: type<{ id: string }>(),
      concurrency: 0,
      limits: [mail],
      order: { key: (i) => i.id, scope: "account", onFailure: "block" },
      retry: { attempts: 1, backoff },
      timeoutMs: null,
      queue: "slow",
      priority: -32_000,
    });
    expect(contract).toMatchObject({
      queue: "slow",
      priority: -32_000,
      attempts: 1,
      backoff,
      timeoutMs: null,
      concurrency: 0,
      ordered: true,
      orderBlocks: true,
      orderScope: "account",
      limitList: [{ limit: mail, key: null }],
    });
  });

  test("a task does not list limits that are decided in code", () => {
    expect(task("send", { limits: () => [mail] }).limitList).toBeNull();
  });

  test("a task is frozen, and so is its handler", () => {
    const contract = task("send");
    expect(Object.isFrozen(contract)).toBe(true);
    expect(Object.isFrozen(contract.handle(() => 1))).toBe(true);
  });

  test.each(["__proto__", "constructor", "toString"])("a task may be called %s", (name) => {
    expect(task(name, { queue: name }).type).toBe(name);
  });

  test("a task is bound to a handler", () => {
    const contract = task("send", { input: type<number>() });
    const handler = contract.handle((input) => input + 1);
    expect(handler.contract).toBe(contract);
    expect(handler.run(1, undefined as never)).toBe(2);
    expect(caught(() => contract.handle(5 as never)).code).toBe("invalid_option");
  });

  test("a task parses the stored input into the input of its handler", () => {
    const input = z.object({ at: z.coerce.date(), n: z.number().default(7) });
    const contract = task("send", { input });
    expect(contract.parse({ at: "2020-01-01" })).toEqual({ at: new Date("2020-01-01"), n: 7 });
    expect(caught(() => contract.parse({ at: "never" })).code).toBe("input_invalid");
    expect(task("send").parse(null)).toBeUndefined();
  });
});

describe("invalid options of a task", () => {
  const key = () => "a";
  const nine = Array.from({ length: 9 }, (_, i) => limit(`l${i}`, { total: 1 }));
  const bad: [option: string, ...values: unknown[]][] = [
    ["concurrency", -1, 0.5, NaN, Infinity, 2e9 + 1, null, "5"],
    ["timeoutMs", 0, -1, 1.5, NaN, Infinity, 2 ** 31, "5"],
    ["priority", 32_001, -32_001, 0.5, NaN, null, "5"],
    ["retry", { attempts: 0 }, { attemps: 3 }, 5, null],
    ["input", {}, "string", null],
    ["output", {}, "string", null],
    ["order", "key", {}, { key: "id" }, null, { key, onFailure: "stop" }, { key, scop: "x" }],
    ["limits", mail, ["mail"], null, [undefined], nine],
    ["concurency", 5],
    ["constructor", 5],
  ];

  test.each(bad)("a task with a bad %s is refused", (option, ...values) => {
    for (const value of values) {
      expect(caught(() => task("send", { [option]: value })).code).toBe("invalid_option");
    }
  });

  test.each([null, 5, "x", []])("a task with the options %j is refused", (options) => {
    expect(caught(() => task("send", options as never)).code).toBe("invalid_option");
  });

  test.each([
    ["", {}],
    ["a\u0000", {}],
    ["send", { queue: "" }],
    ["send", { queue: "a\nb" }],
    ["send", { order: { key: () => "a", scope: "a\u001fb" } }],
  ])("a task with an invalid name is refused: %j, %j", (name, options) => {
    expect(caught(() => task(name, options)).code).toBe("invalid_name");
  });

  test("a task with a misspelt option is refused, and the error names it", () => {
    const error = caught(() => task("send", { concurency: 5 } as never));
    expect(error.message).toContain('task has no option "concurency"; the known options are input, output,');
  });

  test("a task that lists one limit twice is refused", () => {
    expect(caught(() => task("send", { limits: [mail, mail] })).code).toBe("duplicate_limit");
  });

  test("a task with a concurrency and a limit of its own name is refused", () => {
    const options = { concurrency: 5, limits: [mail] };
    expect(caught(() => task("mail", options)).code).toBe("duplicate_limit");
    expect(task("mail", { limits: [mail] }).limitList).toHaveLength(1);
  });
});
