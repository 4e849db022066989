import { afterAll, beforeAll, expect, test } from "vitest";
import { limit, task, type, workflow } from "../../src/index.js";
import { openHouse, type House } from "../client/house.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
  // A warning says that wal_level is too low to send anything; updates are refused all the same.
  await house.sql("create publication everything for all tables");
});
afterAll(() => house.close());

test("every table of the schema has a replica identity", async () => {
  const bare = await house.sql<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'sluice'::regnamespace and c.relkind in ('r', 'p') and c.relreplident <> 'f' and not exists (
       select from pg_index i where i.indrelid = c.oid
         and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident end)`,
  );
  expect(bare, "alter table ... replica identity full, where there is no primary key").toEqual([]);
});

test("tasks of every kind run while a publication for all tables exists", async () => {
  const { sluice } = house;
  const tenant = limit("tenant", { perKey: 1, total: 2 });
  const input = type<{ key: string }>();
  const plain = task("plain", { input });
  const limited = task("limited", { input, limits: [{ limit: tenant, key: (i) => i.key }] });
  const ordered = task("ordered", { input, order: (i) => i.key, concurrency: 2 });
  const flaky = task("flaky", { input, retry: { attempts: 2, backoff: () => 1 } });
  const inside = task("inside", { input });
  const flow = workflow("flow", { input }, (w, given) => ({
    all: w.each("all", limited, [1, 2, 3], () => ({ key: given.key }), { window: 1 }).counts,
    last: w.task("last", plain, { key: given.key }),
  }));
  const worker = await house.work([
    plain.handle((i) => i.key),
    limited.handle((i) => i.key),
    ordered.handle((i) => i.key),
    flaky.handle((_, ctx) => {
      if (ctx.attempt < 2) throw new Error("again");
      return "again";
    }),
    inside.handle((i, ctx) => ctx.transaction(async () => i.key)),
  ]);
  const given = { key: "a" };
  const handles = await Promise.all(
    [plain, limited, limited, ordered, ordered, flaky, inside].map((t) => sluice.enqueue(t, given)),
  );
  const later = await sluice.enqueue(plain, given, { delayMs: 1 });
  const never = await sluice.enqueue(plain, given, { delayMs: 3_600_000 });
  expect(await never.cancel()).toBe("cancelled");
  const results = await Promise.all([...handles, later].map((h) => h.result()));
  expect(results).toEqual(["a", "a", "a", "a", "a", "again", "a", "a"]);
  const run = await sluice.start(flow, given);
  expect(await run.result()).toMatchObject({ last: "a", all: { succeeded: 3 } });
  await sluice.limits.set("tenant", { perKey: 2 });
  await worker.stop();
});
