import { expect, test } from "vitest";
import { keptAfterSetBack, yieldAfterSetBack } from "./schedules/clock.js";
import { clockSetBack, clockSetForward } from "./schedules/fence.js";
import { observe, wanted } from "./schedules/schedule.js";

test("after the clock was set back a dead worker's lease ends within a lease", async () => {
  expect(await observe(clockSetBack)).toEqual(wanted(clockSetBack));
});

test("after the clock was set forward a task runs again and one outcome is accepted", async () => {
  expect(await observe(clockSetForward)).toEqual(wanted(clockSetForward));
});

test("after the clock was set back tasks still give their key's slots to others", async () => {
  expect(await observe(yieldAfterSetBack)).toEqual(wanted(yieldAfterSetBack));
});

test("after the clock was set back a slot is still kept for the task that needs several", async () => {
  expect(await observe(keptAfterSetBack)).toEqual(wanted(keptAfterSetBack));
});
