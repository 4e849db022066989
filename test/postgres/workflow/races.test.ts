import { expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import {
  cancelBesideCompletion,
  cancelOfSleeperRollsBack,
  firstFails,
  handedBackWhileAsked,
  sleepBesideLastChild,
  failBesideHandBack,
  twoFail,
  twoFree,
  twoLastCompleters,
} from "./schedules.js";

test("two last completers advance once", async () => {
  expect(await observe(twoLastCompleters)).toEqual(wanted(twoLastCompleters));
});

test("a completion beside a cancel starts nothing", async () => {
  expect(await observe(cancelBesideCompletion)).toEqual(wanted(cancelBesideCompletion));
});

test("after the first failure of a fail-fast fan-out none of the others starts", async () => {
  expect(await observe(firstFails)).toEqual(wanted(firstFails));
});

test("an item that was asked to stop while it was handed back is cancelled all the same", async () => {
  expect(await observe(handedBackWhileAsked)).toEqual(wanted(handedBackWhileAsked));
});

test("a parent that goes to sleep beside its last child wakes", async () => {
  expect(await observe(sleepBesideLastChild)).toEqual(wanted(sleepBesideLastChild));
});

test("a parent whose cancel rolled back after its last child had ended wakes", async () => {
  expect(await observe(cancelOfSleeperRollsBack)).toEqual(wanted(cancelOfSleeperRollsBack));
});

test("after failures of two fail-fast fan-outs at once none of the others starts", async () => {
  expect(await observe(twoFail)).toEqual(wanted(twoFail));
});

test("an item that is handed back beside the first failure lets no other through", async () => {
  expect(await observe(failBesideHandBack)).toEqual(wanted(failBesideHandBack));
});

test("two who free slots of one window at once lose none", async () => {
  expect(await observe(twoFree)).toEqual(wanted(twoFree));
});
