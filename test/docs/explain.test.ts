import { readFileSync } from "node:fs";
import { transform } from "esbuild";
import { expect, test } from "vitest";
import { limit, task, type ReasonKind } from "../../src/index.js";
import { scene } from "../flow/scene.js";

const page = readFileSync(new URL("../../docs/operate/explain.md", import.meta.url), "utf8");

test("docs/operate/explain.md has a row for every kind of reason", () => {
  const kinds: Record<ReasonKind, true> = {
    scheduled: true,
    order: true,
    blocked: true,
    limit: true,
    window: true,
    children: true,
    paused: true,
    stopping: true,
    noWorker: true,
    suspect: true,
    silent: true,
    pressure: true,
    busy: true,
    next: true,
  };
  const rows = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, kind]) => kind);
  expect(rows).toEqual(Object.keys(kinds));
});

test("the code on docs/operate/explain.md runs and prints what the page shows", async () => {
  const { sluice } = await scene();
  await sluice.enqueue(task("sync", { limits: [limit("vendor", { total: 0 })] }));
  const [, code] = /```ts\n([\s\S]*?)```/.exec(page)!;
  const { code: js } = await transform(code!.replace('"7"', '"1"'), { loader: "ts" });
  const said: unknown[][] = [];
  // oxlint-disable-next-line typescript/no-implied-eval -- the page is part of this repository
  const run = new Function("sluice", "console", `return (async () => {${js}})()`) as (
    ...given: unknown[]
  ) => Promise<void>;
  await run(sluice, { log: (...words: unknown[]) => said.push(words) });
  expect(said).toEqual([
    ["waiting", 'limit "vendor" is set to 0'],
    ["vendor", 0, 0, []],
  ]);
});
