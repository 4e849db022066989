import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { task, type } from "../../src/index.js";
import { codeOf, openHouse, type House } from "../client/house.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
  await house.sluice.enqueue(echo, 0, { idempotencyKey: "first" });
});
afterAll(() => house.close());

const echo = task("echo", { input: type<number>() });

async function serializable(n: number): Promise<pg.PoolClient[]> {
  const all = await Promise.all(Array.from({ length: n }, () => house.begin()));
  for (const tx of all) await tx.query("set transaction isolation level serializable");
  return all;
}

test("serializable transactions with idempotency keys of their own all commit", async () => {
  const all = await serializable(4);
  for (const round of [1, 2])
    for (const [i, tx] of all.entries()) await house.sluice.enqueue(echo, i, { idempotencyKey: `${i}/${round}`, tx });
  for (const tx of all) {
    await tx.query("commit");
    tx.release();
  }
  expect(await house.tasks()).toBe(9);
});

test("the second of two serializable transactions with one idempotency key fails with database_busy", async () => {
  const [one, two] = await serializable(2);
  await two!.query("select 1");
  await house.sluice.enqueue(echo, 1, { idempotencyKey: "same", tx: one! });
  const second = codeOf(() => house.sluice.enqueue(echo, 1, { idempotencyKey: "same", tx: two! }));
  await one!.query("commit");
  expect(await second).toBe("database_busy");
  await two!.query("rollback");
  const again = await house.sluice.enqueue(echo, 1, { idempotencyKey: "same", tx: two! });
  expect(again.existed).toBe(true);
  one!.release();
  two!.release();
});
