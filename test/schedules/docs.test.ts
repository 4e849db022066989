import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { schedule } from "./programs/documented.js";
import { stage } from "./stage.js";

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

test("the schedules page shows exactly the code that tests run", async () => {
  const code = textOf("test/schedules/programs/documented.ts");
  expect(textOf("docs/start/schedules.md")).toContain(code.replace('"../../../src/index.js"', '"sluice"').trimEnd());
  const s = await stage();
  await schedule(s.sluice);
  const handle = await s.sluice.schedules.trigger("nightly-report");
  expect(await handle.status()).toMatchObject({ type: "report", state: "ready" });
});
