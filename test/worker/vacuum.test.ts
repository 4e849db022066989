import { expect, test } from "vitest";
import { Vacuum } from "../../src/keeper/vacuum.js";
import type { AnyStatement } from "../../src/postgres/statement.js";

interface Rows {
  readonly live: number;
  readonly dead: number;
}

/** A server with these rows in `ready`, and the rows that a vacuum leaves. */
function vacuumOver(rows: Rows, left: (rows: Rows) => Rows) {
  const clock = { nowMs: 0, now: () => clock.nowMs };
  const vacuumed: string[] = [];
  let there = rows;
  const run = ({ name }: AnyStatement): Promise<object[]> => {
    if (name === "walked_rows") return Promise.resolve([{ name: "ready", ...there }]);
    vacuumed.push(name);
    there = left(there);
    return Promise.resolve([]);
  };
  return { vacuum: new Vacuum({ run } as never, clock), clock, vacuumed };
}

const cleaned = ({ live }: Rows): Rows => ({ live, dead: 0 });
const kept = (rows: Rows): Rows => rows;

test("the keeper vacuums dead rows once there are enough of them", async () => {
  for (const [rows, times] of [
    [{ live: 0, dead: 9_999 }, 0],
    [{ live: 0, dead: 10_000 }, 1],
    [{ live: 1_000_000, dead: 99_999 }, 0],
    [{ live: 1_000_000, dead: 100_000 }, 1],
    [{ live: 0, dead: 1_000_001 }, 0],
    [{ live: 2_000_001, dead: 900_000 }, 0],
  ] as const) {
    const { vacuum, vacuumed } = vacuumOver(rows, cleaned);
    await vacuum.run();
    await vacuum.run();
    expect([rows, vacuumed]).toEqual([rows, Array(times).fill("vacuum_ready")]);
  }
});

test("vacuums back off to one a minute while a snapshot keeps dead rows", async () => {
  const { vacuum, clock, vacuumed } = vacuumOver({ live: 0, dead: 50_000 }, kept);
  const timesMs: number[] = [];
  for (clock.nowMs = 0; clock.nowMs <= 243_000; clock.nowMs += 1_000) {
    await vacuum.run();
    if (vacuumed.length > timesMs.length) timesMs.push(clock.nowMs);
  }
  expect(timesMs.map((ms) => ms / 1_000)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
});

test("a vacuum that cannot keep up with a busy queue is repeated within seconds", async () => {
  const left = [
    { live: 0, dead: 30_000 },
    { live: 0, dead: 0 },
  ];
  const { vacuum, clock, vacuumed } = vacuumOver({ live: 0, dead: 20_000 }, () => left.shift()!);
  await vacuum.run();
  clock.nowMs = 1_000;
  await vacuum.run();
  expect(vacuumed).toHaveLength(2);
});
