import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { blockOf } from "./page.js";

const snippets = new URL("snippets/", import.meta.url);

test.each(readdirSync(snippets))("the transactions page shows snippets/%s exactly", (file) => {
  const code = readFileSync(new URL(file, snippets), "utf8")
    .replace('"../../../src/index.js"', '"sluice"')
    .replace('"../../../src/tx/index.js"', '"sluice/tx"');
  expect(blockOf(`ts ${file.replace(".ts", "")}`)).toBe(code);
});
