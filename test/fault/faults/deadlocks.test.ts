import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { unprovoked } from "../../../fault/rest.js";
import { ErrorCount, PROVOKED } from "../../../fault/server/errors.js";

/** As the server writes it with log_line_prefix '%e %a|'. */
function deadlock(app: string, statements: readonly [string, string]): string {
  return [
    `40P01 ${app}|ERROR:  deadlock detected`,
    `40P01 ${app}|DETAIL:  Process 1 waits for ShareLock on transaction 5; blocked by process 2.`,
    "\tProcess 2 waits for ShareLock on transaction 4; blocked by process 1.",
    ...statements.map((statement, i) => `\tProcess ${i + 1}: ${statement}`),
    `40P01 ${app}|HINT:  See server log for query details.`,
    "",
  ].join("\n");
}

function logFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-deadlocks-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "log");
  writeFileSync(file, "");
  return file;
}

const step = "select * from sluice.step($1)";
const ours = `${PROVOKED} select 1`;

test("a deadlock counts as provoked only if a statement of the fault is part of it", async () => {
  const file = logFile();
  const errors = new ErrorCount(file);
  expect(await errors.deadlocks()).toEqual({ provoked: 0, others: 0, first: [] });
  appendFileSync(file, deadlock("worker-1.1", [step, ours]));
  expect(await errors.deadlocks()).toEqual({ provoked: 1, others: 0, first: [] });
  expect(unprovoked(await errors.deadlocks())).toEqual([]);

  appendFileSync(file, deadlock("worker-1.1", [step, step]));
  // What the next one says is not said of this.
  appendFileSync(file, `00000 |LOG:  something else\n${deadlock("worker-2.1", [ours, step])}`);
  const { provoked, others, first } = await errors.deadlocks();
  expect([provoked, others, first.length]).toEqual([2, 1, 1]);
  expect(unprovoked({ provoked, others, first }).join()).toMatch(/^1 deadlocks.+sluice\.step/s);
});

test("a deadlock whose victim is the fault's own administrator is not a finding", async () => {
  const file = logFile();
  appendFileSync(file, deadlock("fault", [ours, step]));
  expect(await new ErrorCount(file).deadlocks()).toEqual({ provoked: 0, others: 0, first: [] });
});
