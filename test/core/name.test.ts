import { describe, expect, test } from "vitest";
import { checkKey, checkName, checkSchemaName } from "../../src/core/name.js";
import { quote } from "../../src/core/quote.js";
import { caught, loneHigh, loneLow, nul } from "./caught.js";

const badTexts = ["", nul, loneHigh, loneLow, "a\nb", "a\u001fb", "a\u007fb", "a\u009fb"];
const noTexts = [undefined, null, true, {}, [], () => "a", Symbol("a")];
const noIntegers = [NaN, 1.5, Infinity, 2 ** 53];
const bad: unknown[] = [...badTexts, ...noTexts, ...noIntegers];

// Titles quote the values as error messages do.
function rows(values: unknown[]): [string, unknown][] {
  return values.map((value) => [quote(value), value]);
}

describe("names of tasks, queues and limits", () => {
  test.each(["a", "constructor", "__proto__", "'; DROP TABLE task; --", "ünïcödé 😀", "x".repeat(128)])(
    "a name may be %j",
    (name) => expect(checkName("task", name)).toBe(name),
  );

  test.each(rows([...bad, 1, 1n, "x".repeat(129)]))("a name is refused if it is %s", (_, name) => {
    const error = caught(() => checkName("queue", name));
    expect(error.code).toBe("invalid_name");
    expect(error.message).toMatch(/^queue name .* is not allowed: use 1 to 128 characters/);
  });

  test("a refused name is quoted short and on one line", () => {
    const { message } = caught(() => checkName("task", "\n\u0085\ud800" + "x".repeat(1e6)));
    expect(message.length).toBeLessThan(250);
    expect(message).not.toMatch(/[\p{Cc}\p{Cs}]/u);
    expect(message).toContain('"\\n\\u0085\\ud800xxx');
  });
});

describe("order keys and keys of limits", () => {
  test.each([
    ["a", "a"],
    [0, "0"],
    [-0, "0"],
    [-7, "-7"],
    [2 ** 53 - 1, "9007199254740991"],
    [2n ** 80n, "1208925819614629174706176"],
    ["__proto__", "__proto__"],
    ["x".repeat(512), "x".repeat(512)],
  ])("a key may be %s", (key, text) => expect(checkKey("order", key)).toBe(text));

  test.each(rows([...bad, "x".repeat(513), 10n ** 600n]))("a key is refused if it is %s", (_, key) => {
    const error = caught(() => checkKey("limit", key));
    expect(error.code).toBe("invalid_key");
    expect(error.message).toMatch(/^limit key .* is not allowed: use 1 to 512 characters/);
  });
});

describe("schema names", () => {
  test.each(["sluice", "_a1", "a".repeat(48), "constructor", "pgx"])("a schema name may be %s", (name) =>
    expect(checkSchemaName(name)).toBe(name),
  );

  const badNames = ["", "1a", "Sluice", "a-b", 'a"b', "a;drop schema public", "a b", "a\n", "é"];

  test.each(rows([...badNames, "pg_sluice", "a".repeat(49), undefined, null, 1, {}]))(
    "a schema name is refused if it is %s",
    (_, name) => expect(caught(() => checkSchemaName(name)).code).toBe("invalid_option"),
  );
});
