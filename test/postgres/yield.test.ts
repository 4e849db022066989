import { expect, test } from "vitest";
import { observe, wanted, type Schedule } from "./schedules/schedule.js";
import {
  busyTotal,
  closedKeepsNoSlots,
  fullTotalKeepsNoSlots,
  fullWorkers,
  manyHolders,
  manyKinds,
  onItsWay,
  otherSecondKey,
  secondKeyKeepsNoSlots,
  thirdKey,
} from "./schedules/yield.js";

const holds = async (s: Schedule): Promise<void> => expect(await observe(s)).toEqual(wanted(s));

test.each(["queue", "type", "group"] as const)(
  "tasks that a paused queue or a number of 0 stops give their key's slots to others: %s",
  (how) => holds(closedKeepsNoSlots(how)),
);

test("tasks that wait at a full total give their key's slots to others, and keep their place", () =>
  holds(fullTotalKeepsNoSlots));

test("tasks of one type that differ in their second key do not keep each other out", () => holds(otherSecondKey));

test("tasks that wait for a second key give the slots of the first to others", () => holds(secondKeyKeepsNoSlots));

test("tasks that gave their slots back run again although all permits are in use", () => holds(fullWorkers));

test("tasks that wait for a third key give the slots of the first to others", () => holds(thirdKey));

test("a task on its way to a second key with room keeps its place", () => holds(onItsWay));

test("a task that gave its key back is not overtaken for ever at a busy total", () => holds(busyTotal));

test("of many tasks that hold keys at a full total each gives its own back in turn", () => holds(manyHolders));

test("thousands of groups of one type do not keep tasks of another from giving keys back", () => holds(manyKinds));
