import { expect, test } from "vitest";
import { neverBothFree, suspectAtABusyTotal } from "./schedules/kept.js";
import { observe, wanted } from "./schedules/schedule.js";

test("a freed slot is kept for the task that is first at all its totals", async () => {
  expect(await observe(neverBothFree)).toEqual(wanted(neverBothFree));
});

test("a suspect starts although the slot of its total goes from hand to hand", async () => {
  expect(await observe(suspectAtABusyTotal)).toEqual(wanted(suspectAtABusyTotal));
});
