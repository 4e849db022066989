import { expect, test } from "vitest";
import { Shares } from "../../src/worker/shares.js";

function sharesAfter(started: number, ended: number): Shares {
  const shares = new Shares(500);
  shares.starting(started, 7);
  shares.tickEnded(7 + ended);
  return shares;
}

test("settled tasks are spread over the free connections, up to the size of a statement", () => {
  const shares = new Shares(500);
  expect([shares.of(0, 2), shares.of(1, 2), shares.of(10, 2), shares.of(10, 1)]).toEqual([0, 1, 5, 10]);
  expect(shares.of(2_000, 2)).toBe(500);
});

test("a few short tasks are settled in one statement, and many are spread", () => {
  const brief = sharesAfter(5, 5);
  expect([brief.of(10, 2), brief.of(30, 2), brief.of(400, 2), brief.of(3, 2)]).toEqual([10, 20, 200, 3]);
  expect(sharesAfter(5, 4).of(10, 2)).toBe(5);
});

test("several replies in one tick of the event loop count together, and a tick without a reply changes nothing", () => {
  const shares = new Shares(500);
  shares.starting(5, 0);
  shares.starting(5, 2);
  shares.tickEnded(9);
  expect(shares.of(10, 2)).toBe(5);
  shares.starting(5, 9);
  shares.tickEnded(14);
  shares.starting(0, 14);
  shares.tickEnded(14);
  expect(shares.of(10, 2)).toBe(10);
});
