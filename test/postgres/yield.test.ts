import { expect, test } from "vitest";
import { observe, wanted, type Schedule } from "./schedules/schedule.js";
import {
  closedKeepsNoSlots,
  fullTotalKeepsNoSlots,
  otherSecondKey,
  secondKeyKeepsNoSlots,
} from "./schedules/yield.js";

const holds = async (s: Schedule): Promise<void> => expect(await observe(s)).toEqual(wanted(s));

test.each(["queue", "type", "group"] as const)(
  "tasks that a paused queue or a number of 0 stops give their key's slots to others: %s",
  (how) => holds(closedKeepsNoSlots(how)),
);

test("tasks that wait at a full total give their key's slots to others, and keep their place", () =>
  holds(fullTotalKeepsNoSlots));

test("tasks of one type that differ in their second key do not keep each other out", () =>
  holds(otherSecondKey));

test("tasks that wait for a second key give the slots of the first to others", () =>
  holds(secondKeyKeepsNoSlots));
