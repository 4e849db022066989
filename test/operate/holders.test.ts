import { expect, test } from "vitest";
import { limit, task } from "../../src/index.js";
import { scene, signal, until } from "../flow/scene.js";

test("limits.holders returns the running tasks of a total, of several totals, of a key and of a type's limit", async () => {
  const s = await scene();
  const release = signal();
  const [one, two] = [limit("one", { total: 9 }), limit("two", { total: 9 })];
  const tenant = limit("tenant", { perKey: 3 });
  const types = {
    single: task("single", { limits: [one] }),
    both: task("both", { limits: [one, two] }),
    keyed: task("keyed", { limits: [tenant.for("acme")] }),
    own: task("own", { concurrency: 2 }),
    free: task("free"),
  };
  const handlers = Object.values(types).map((each) => each.handle(() => release.promise));
  await s.worker({ handlers, name: "w-1", pollIntervalMs: 20 });
  const ids: Record<string, string> = {};
  for (const [name, each] of Object.entries(types)) {
    const { id } = await s.sluice.enqueue(each);
    ids[name] = id;
    await until(`${name} to run`, async () => (await s.sluice.task(id).status())?.state === "running");
  }
  const { limits } = s.sluice;
  const tasks = async (name: string) => (await limits.holders(name)).map((holder) => holder.task);
  expect(await tasks("one")).toEqual([ids.single, ids.both]);
  expect(await tasks("two")).toEqual([ids.both]);
  expect(await tasks("own")).toEqual([ids.own]);
  expect(await limits.holders(tenant)).toEqual([
    {
      task: ids.keyed,
      type: "keyed",
      queue: "default",
      key: "acme",
      since: (await s.sluice.task(ids.keyed!).status())!.startedAt,
      worker: "w-1",
    },
  ]);
  expect(await limits.holders("one", { limit: 1 })).toMatchObject([{ task: ids.single, key: null }]);
  await expect(limits.holders("noe")).rejects.toMatchObject({ code: "unknown_limit" });
  await expect(limits.holders("one", { limit: 0 })).rejects.toMatchObject({ code: "invalid_option" });
  release.resolve();
});
