import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { task } from "../../src/index.js";
import { openHouse, type House } from "../client/house.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());
afterEach(() => void vi.restoreAllMocks());

const job = task("job");
const MINUTE_MS = 60_000;

/** Forgets all groups, as after an hour without use. */
async function forgetAll(): Promise<void> {
  await house.sql("delete from sluice.gated");
  await house.sql("delete from sluice.task");
  for (let i = 0; i < 2; i++) await house.sql("select sluice.forget_limits(0, 1000, 0)");
}

test("an enqueue into a forgotten group creates the group again, with its number", async () => {
  const options = { group: "customer-1", groupLimit: 3 };
  await house.sluice.enqueue(job, undefined, options);
  await forgetAll();
  await expect(house.sluice.limits.get("customer-1")).rejects.toMatchObject({
    code: "unknown_limit",
  });
  const handle = await house.sluice.enqueue(job, undefined, options);
  expect((await handle.status())?.state).toBe("waiting");
  expect(await house.sluice.limits.get("customer-1")).toMatchObject({ total: 3 });
});

test("a client declares a group again before the database may forget it", async () => {
  const options = { group: "customer-2", groupLimit: 3 };
  await house.sluice.enqueue(job, undefined, options);
  await house.sql("update sluice.limits set unused_since = now() where name = 'customer-2'");
  const marked = async (): Promise<boolean> =>
    (await house.sql("select from sluice.limits where unused_since is not null")).length > 0;
  await house.sluice.enqueue(job, undefined, options);
  expect(await marked()).toBe(true);
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + 16 * MINUTE_MS);
  const tx = await house.begin();
  await house.sluice.enqueue(job, undefined, { ...options, tx });
  expect(await marked()).toBe(false);
  await tx.query("rollback");
  tx.release();
});

test("limits are listed in pages by name, and by prefix", async () => {
  for (const name of ["p-1", "p-2", "p-3", "q-1"]) await house.sluice.enqueue(job, undefined, { group: name });
  const names = async (options?: object): Promise<string[]> =>
    (await house.sluice.limits.list(options)).map(({ name }) => name);
  expect(await names({ prefix: "p-" })).toEqual(["p-1", "p-2", "p-3"]);
  expect(await names({ prefix: "p-", limit: 2 })).toEqual(["p-1", "p-2"]);
  expect(await names({ prefix: "p-", limit: 2, after: "p-2" })).toEqual(["p-3"]);
  expect(await names({ after: "p-2", limit: 2 })).toEqual(["p-3", "q-1"]);
  for (const wrong of [{ limit: 0 }, { limit: 1_001 }, { max: 3 }])
    await expect(names(wrong)).rejects.toMatchObject({ code: "invalid_option" });
});
