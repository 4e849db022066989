import { expect, test } from "vitest";
import { faketime } from "../../fault/faults/clock.js";
import { lacking } from "../../fault/options.js";
import type { Fault } from "../../fault/stage.js";

const fault = (name: string, what: string | null): Fault => ({
  name,
  about: name,
  disturbs: "work",
  lacks: () => what,
  bite: () => Promise.resolve(0),
});

test("a fault whose tool is missing is refused at the start, with what to install", () => {
  const { lacks: _, ...plain } = fault("plain", null);
  expect(lacking([plain, fault("ready", null)])).toBeNull();
  const text = lacking([plain, fault("late", "install the package `clock`")]);
  expect(text).toContain("late: install the package `clock`");
  expect(text).toContain("--only");
});

test("a machine without libfaketime is detected", () => {
  expect(faketime(["/no/such/folder"])).toBeNull();
});
