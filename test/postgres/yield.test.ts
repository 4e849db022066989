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
  "tasks stopped by a paused queue or a limit of 0 release their key slots to others: %s",
  (how) => holds(closedKeepsNoSlots(how)),
);

test("tasks that wait at a full total release their key slots to others, and keep their place", () =>
  holds(fullTotalKeepsNoSlots));

test("tasks of one type with different second keys do not block each other", () => holds(otherSecondKey));

test("tasks that wait for a second key release the slots of the first to others", () => holds(secondKeyKeepsNoSlots));

test("tasks that released their slots run again although all permits are in use", () => holds(fullWorkers));

test("tasks that wait for a third key release the slots of the first to others", () => holds(thirdKey));

test("a task on its way to a second key with room keeps its place", () => holds(onItsWay));

test("a task that released its key slot is not overtaken forever at a busy total", () => holds(busyTotal));

test("tasks that hold keys at a full total release them one after the other", () => holds(manyHolders));

test("thousands of groups of one type do not prevent tasks of another from releasing keys", () => holds(manyKinds));
