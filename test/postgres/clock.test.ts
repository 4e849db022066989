import { expect, test } from "vitest";
import { clockSetBack, clockSetForward } from "./schedules/fence.js";
import { observe, wanted } from "./schedules/schedule.js";

test("after the clock was set back a dead worker's lease ends within a lease", async () => {
  expect(await observe(clockSetBack)).toEqual(wanted(clockSetBack));
});

test("after the clock was set forward a task runs again and one outcome is accepted", async () => {
  expect(await observe(clockSetForward)).toEqual(wanted(clockSetForward));
});
