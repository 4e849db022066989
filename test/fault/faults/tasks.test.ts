import { expect, test } from "vitest";
import { mayHaveHappened } from "../../../fault/faults/tasks.js";
import { SluiceError } from "../../../src/index.js";

const away = (details?: Record<string, unknown>) =>
  new SluiceError("database_unavailable", "away", details === undefined ? {} : { details });

test("a retry by hand may have happened only if it was sent and not refused", () => {
  expect(mayHaveHappened(away())).toBe(true);
  expect(mayHaveHappened(away({ sqlstate: "57P01" }))).toBe(true);
  expect(mayHaveHappened(new Error("anything else"))).toBe(true);
  expect(mayHaveHappened(away({ sent: false }))).toBe(false);
  expect(mayHaveHappened(away({ sqlstate: "25006" }))).toBe(false);
  expect(mayHaveHappened(new SluiceError("database_busy", "a deadlock"))).toBe(false);
});
