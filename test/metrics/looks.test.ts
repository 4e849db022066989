import { expect, test } from "vitest";
import { Looks } from "../../src/worker/looks.js";

const MINUTE_MS = 60_000;
const full = { group: "pool", slots: 1, used: 1, waiting: 3 };

function looks() {
  let [now, reads] = [0, 0];
  const made = new Looks({
    clock: { now: () => now },
    read: async () => {
      reads++;
      return [full];
    },
  });
  return { made, reads: () => reads, later: (ms: number) => (now += ms) };
}

test("who is never scraped never looks at the limits", () => {
  const { made, reads, later } = looks();
  for (let i = 0; i < 10; i++) {
    expect(made.full).toEqual([]);
    later(MINUTE_MS);
  }
  expect(reads()).toBe(0);
});

test("who is scraped looks at most once a second, until nobody has asked for minutes", async () => {
  const { made, reads, later } = looks();
  expect(await made.slots()).toEqual([full]);
  expect(made.full).toEqual(["pool"]);
  expect(reads()).toBe(1);
  later(1_500);
  expect(made.full).toEqual(["pool"]);
  expect(reads()).toBe(2);
  later(10 * MINUTE_MS);
  expect(made.full).toEqual([]);
  expect(reads()).toBe(2);
});
