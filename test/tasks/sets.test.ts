import { afterAll, beforeAll, expect, test } from "vitest";
import { limit, task, type } from "../../src/index.js";
import { openHouse, type House } from "../client/house.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

test("the first use of a set of totals in an open transaction blocks no other enqueue of the set", async () => {
  const { sluice } = house;
  const printer = limit("printer", { total: 2 });
  const print = task("print", { input: type<number>(), limits: [printer] });
  const group = { group: "floor", groupLimit: 2 };
  // Declare both limits beforehand, but not the set of both.
  await sluice.enqueue(print, 0);
  await sluice.enqueue(task("other"), undefined, group);
  const tx = await house.begin();
  await sluice.enqueue(print, 1, { ...group, tx });
  await sluice.enqueue(print, 2, group);
  const handle = await sluice.enqueue(print, 3, group);
  await tx.query("commit");
  tx.release();
  const sets = await house.sql<{ gates: number[] }>("select gates from sluice.gate_set");
  expect(sets.length).toBeGreaterThan(1);
  expect(new Set(sets.map((s) => s.gates.join())).size).toBe(1);
  // Both ids of the set refer to the same two totals.
  let join!: () => void;
  const together = new Promise<void>((resolve) => (join = resolve));
  let running = 0;
  let most = 0;
  const worker = await house.work([
    print.handle(async () => {
      most = Math.max(most, ++running);
      if (running === 2) join();
      await together;
      running--;
    }),
  ]);
  await handle.result();
  await expect.poll(async () => (await sluice.counts()).succeeded).toBe(4);
  expect(most).toBe(2);
  expect(await house.sql("select * from sluice.violations()")).toEqual([]);
  await worker.stop();
});
