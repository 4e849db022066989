import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import { tooDoubtful } from "../../../fault/audit/doubts.js";
import type { Line } from "../../../fault/audit/line.js";
import { disturbance, Tale, terms } from "./story.js";

const told = (...lines: (Line | readonly Line[])[]) => tooDoubtful(audit(lines.flat(), terms));

/** A worker that loses its lease every five seconds, and what it lost runs elsewhere. */
function losses(n: number): Line[] {
  return Array.from({ length: n }, (_, i) => {
    const [t, at] = [new Tale(`l/${i}`), 5_000 * i];
    const lost = [...t.enqueued(at), ...t.ran(at + 10, at + 1_200, "lease_lost")];
    const again = [...t.ran(at + 1_300, at + 1_310, "completed", { process: "w2" })];
    return [...lost, ...again, t.accepted(at + 1_311)];
  }).flat();
}

const calm = (n: number): Line[] =>
  Array.from({ length: n }, (_, i) => new Tale(`c/${i}`).whole(20 * i + 10, 20 * i + 20, { process: "w3" })).flat();

test("the audit finds a worker that repeatedly loses its lease without a disturbance", () => {
  const lost = "4 leases were lost although nothing disturbed their workers";
  expect(told(calm(100), losses(4))).toEqual([lost]);
  expect(told(calm(100), losses(3))).toEqual([]);
  const announced = Array.from({ length: 4 }, (_, i) => disturbance(5_000 * i + 5, 5_000 * i + 1_100));
  expect(told(calm(100), losses(4), announced.flat())).toEqual([]);
});

/** Runs of a worker that is frozen in their middle, ten at a time. */
const frozen = Array.from({ length: 10 }, (_, i) => new Tale(`f/${i}`).whole(10_010, 13_020, { process: "w2" })).flat();

test("the audit finds a log of which too much is in doubt", () => {
  const asleep = [...frozen, ...disturbance(10_020, 13_010, "w2")];
  expect(told(asleep, calm(22))).toEqual(["31 % is in doubt: 10 runs and 0 starts of 32"]);
  expect(told(asleep, calm(24))).toEqual([]);
  expect(told(frozen, calm(22))).toEqual([]);
});
