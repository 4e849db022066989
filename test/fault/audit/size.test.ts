import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import { importsOf } from "../../tidy/modules.js";
import { filesBelow, repository, textOf } from "../../tidy/source.js";
import type { Report } from "../../../fault/audit/report.js";
import { Tale, terms } from "./story.js";

const folder = "fault/audit/";

test("the audit imports nothing from outside its folder", () => {
  const files = filesBelow(folder, ".ts");
  const outside = files.flatMap((path) =>
    importsOf(path)
      .filter(({ from }) => !from.startsWith(folder))
      .map(({ from }) => `${path} imports ${from}`),
  );
  expect(files).toContain("fault/audit/audit.ts");
  expect(outside).toEqual([]);
});

test("no file of the audit has more than 250 lines", () => {
  const long = filesBelow(folder, ".ts").filter((path) => textOf(path).split("\n").length > 250);
  expect(long).toEqual([]);
});

test("the audit of 200,000 lines takes at most 192 MB, including the lines", async () => {
  const program = fileURLToPath(new URL("many.ts", import.meta.url));
  const node = ["--max-old-space-size=192", "--import", "tsx", program, "200000"];
  const { stdout } = await promisify(execFile)(process.execPath, node, { cwd: repository });
  const { well, wrong } = JSON.parse(stdout) as { well: Report; wrong: Report };
  expect(well).toMatchObject({ violations: 0, tasks: 40_000, runs: 40_000 });
  expect(well.lines).toBeGreaterThan(200_000);
  // The report has a few lines for each kind, however many findings there are.
  expect(wrong.findings.lost.count).toBe(40_000);
  expect(JSON.stringify(wrong).length).toBeLessThan(50_000);
}, 120_000);

test("one task with 20,000 executions is audited as fast as many tasks", () => {
  const tale = new Tale("p/1", { orderKey: "k", place: 1, limits: ["pool"] });
  const runs = Array.from({ length: 20_000 }, (_, n) => tale.ran(n * 10 + 10, n * 10 + 15, "snoozed"));
  const lines = [...tale.enqueued(0), ...runs.flat(), ...tale.ran(300_000, 300_001), tale.accepted(300_002)];
  expect(audit(lines, terms)).toMatchObject({ violations: 0, ranAgain: { snoozed: 20_000 } });
});
