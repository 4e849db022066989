import { expect, test } from "vitest";
import { Appetite } from "../../src/plan/simulate/appetite.js";

test("claims begin with one, grow fourfold while they come back full, and begin again", () => {
  const appetite = new Appetite({ permits: 1_000, batch: 50 });
  const wants = Array.from({ length: 5 }, () => {
    const claim = appetite.next(0, 1_000);
    appetite.learn(claim, claim.want);
    return claim.want;
  });
  expect(wants).toEqual([1, 4, 16, 50, 50]);
  appetite.learn(appetite.next(0, 1_000), 3);
  expect(appetite.next(10, 1_000).want).toBe(10 + 3);
});

test("with nine tenths in hand only what is settled is replaced", () => {
  const appetite = new Appetite({ permits: 100, batch: 50 });
  for (const claimed of [1, 4, 15]) appetite.learn(appetite.next(0, 100), claimed);
  expect(appetite.next(3, 6).want).toBe(3);
  expect(appetite.next(3, 8).want).toBe(3);
  expect(appetite.next(3, 9).want).toBe(12);
});

test("it looks until it has told that it sleeps, and then fetches what the bell announces", () => {
  const appetite = new Appetite({ permits: 100, batch: 50 });
  const looks = Array.from({ length: 3 }, () => {
    const claim = appetite.next(0, 100);
    appetite.learn(claim, 0);
    return claim;
  });
  expect(looks.map(({ want, tells }) => [want, tells])).toEqual([
    [1, false],
    [1, true],
    [1, false],
  ]);
  expect(appetite.next(0, 100).want).toBe(0);
  appetite.ring(3);
  expect(appetite.next(0, 100)).toEqual({ want: 3, tells: false, errand: true });
  appetite.wake();
  expect(appetite.next(0, 100).want).toBe(0);
});

test("a worker that fills up with a backlog takes its last tenth too, and then only replaces", () => {
  const appetite = new Appetite({ permits: 100, batch: 50 });
  for (const claimed of [1, 4, 16, 50]) appetite.learn(appetite.next(0, 100), claimed);
  expect(appetite.next(0, 6).want).toBe(6);
  expect(appetite.next(3, 0).want).toBe(3);
  expect(appetite.next(3, 6).want).toBe(3);
});
