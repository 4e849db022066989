import { expect, test } from "vitest";
import { keptAfterSetBack, yieldAfterSetBack } from "./schedules/clock.js";
import { clockSetBack, clockSetForward } from "./schedules/fence.js";
import { observe, wanted } from "./schedules/schedule.js";

test("a dead worker's lease ends within a lease after the clock was set back", async () => {
  expect(await observe(clockSetBack)).toEqual(wanted(clockSetBack));
});

test("a task runs again and one outcome is accepted after the clock was set forward", async () => {
  expect(await observe(clockSetForward)).toEqual(wanted(clockSetForward));
});

test("tasks still release their key slots to others after the clock was set back", async () => {
  expect(await observe(yieldAfterSetBack)).toEqual(wanted(yieldAfterSetBack));
});

test("a slot is still kept for the task that needs several after the clock was set back", async () => {
  expect(await observe(keptAfterSetBack)).toEqual(wanted(keptAfterSetBack));
});
