import { idsOf, type Scene, type Session, type TestWorker } from "../../support/sql.js";
import { schedule } from "./schedule.js";

interface Stage {
  readonly a: Session;
  readonly x: number;
  readonly y: number;
  readonly tenant: number;
  readonly worker: TestWorker;
  /** What is claimed until nothing more comes. */
  readonly claimAll: (n?: number) => Promise<number[]>;
}

/** Types x (of queue "x", with a total "pool" of one slot) and y share a limit of two per tenant. */
async function stage(scene: Scene): Promise<Stage & { readonly pool: number }> {
  const [a] = await scene.sessions(1);
  const tenant = await a.limit("tenant", { perKey: 2 });
  const pool = await a.limit("pool", { total: 1 });
  const x = await a.type("x", { limits: [tenant, pool], queue: "x" });
  const y = await a.type("y", { limits: [tenant] });
  const worker = await a.register([x, y]);
  const claimAll = async (n = 10): Promise<number[]> => {
    const all: number[] = [];
    for (let held = await a.claim(worker, n); held.length > 0; held = await a.claim(worker, n))
      all.push(...idsOf(held));
    return all;
  };
  return { a, x, y, tenant, pool, worker, claimAll };
}

/** Tasks of x have the slots of a tenant, and their queue is paused, or their type or group has a number of 0. */
export const closedKeepsNoSlots = (how: "queue" | "type" | "group") =>
  schedule({ before: [] as number[], others: [6, 7], after: [1, 2] }, async (scene) => {
    const { a, x, y, tenant, pool, worker, claimAll } = await stage(scene);
    if (how === "type") await a.type("x", { limits: [tenant, pool], queue: "x", concurrency: 9 });
    const limits = how === "group" ? [tenant, pool] : [tenant];
    await a.enqueue(x, { n: 5, limits, keys: ["t"] });
    await a.admit();
    const name = { queue: "", type: "x", group: "pool" }[how];
    const close = (shut: boolean): Promise<unknown> =>
      how === "queue"
        ? a.value("select sluice.pause_queue('x', $1)", [shut])
        : a.setLimit(name, { total: shut ? 0 : 9 });
    await close(true);
    await a.enqueue(y, { n: 3, limits: [tenant], keys: ["t"] });
    const before = await claimAll();
    await a.keep();
    const held = await a.claim(worker, 10);
    await close(false);
    await a.keep();
    await a.step(worker, 0, held);
    await a.keep();
    return { before, others: idsOf(held), after: await claimAll(2) };
  });

/** Tasks of x have the slots of a tenant and wait for a total that is full: others of the tenant could run. */
export const fullTotalKeepsNoSlots = schedule(
  { before: [] as number[], others: [7, 8], next: [2] },
  async (scene) => {
    const { a, x, y, tenant, pool, worker } = await stage(scene);
    await a.enqueue(x, { limits: [tenant, pool], keys: ["other"] });
    const first = await a.claim(worker, 10);
    await a.enqueue(x, { n: 5, limits: [tenant, pool], keys: ["t"] });
    await a.enqueue(y, { n: 3, limits: [tenant], keys: ["t"] });
    const before = idsOf(await a.claim(worker, 10));
    await a.keep();
    await scene.moveClock(600);
    await a.keep();
    const others = await a.claim(worker, 10);
    // The total is free again, and then a slot of the tenant: what gave it back comes before the rest.
    await a.step(worker, 0, first);
    await a.keep();
    await a.step(worker, 0, others.slice(0, 1));
    return { before, others: idsOf(others), next: idsOf(await a.claim(worker, 1)) };
  },
);

/** Tasks of one type have the slots of a tenant and wait for an account: the tenant's next one needs another account. */
export const otherSecondKey = schedule(
  { before: [1], other: [9], next: [10], back: [2] },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const tenant = await a.limit("tenant", { perKey: 3 });
    const account = await a.limit("account", { perKey: 1 });
    const limits = [tenant, account];
    const x = await a.type("x", { limits });
    const worker = await a.register([x]);
    await a.enqueue(x, { n: 8, limits, keys: ["t", "a"] });
    await a.enqueue(x, { n: 2, limits, keys: ["t", "b"] });
    const first = [...(await a.claim(worker, 9)), ...(await a.claim(worker, 9))];
    await a.keep();
    const other = await a.claim(worker, 9);
    // A slot of the tenant and one of account b come back: what needs account a is passed over, and keeps its place.
    const next = (await a.step(worker, 9, other)).held;
    await a.step(worker, 0, [...first, ...next]);
    await a.keep();
    const back = [...idsOf(await a.claim(worker, 9)), ...idsOf(await a.claim(worker, 9))];
    return { before: idsOf(first), other: idsOf(other), next: idsOf(next), back };
  },
);

/** Tasks have the slots of a tenant and wait for an account: others of the tenant could run. */
export const secondKeyKeepsNoSlots = schedule({ before: [1], others: [4, 5] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const tenant = await a.limit("tenant", { perKey: 3 });
  const account = await a.limit("account", { perKey: 1 });
  const x = await a.type("x", { limits: [tenant, account] });
  const y = await a.type("y", { limits: [tenant] });
  const worker = await a.register([x, y]);
  await a.enqueue(x, { n: 3, limits: [tenant, account], keys: ["t", "a"] });
  await a.enqueue(y, { n: 2, limits: [tenant], keys: ["t"] });
  const before = [...idsOf(await a.claim(worker, 9)), ...idsOf(await a.claim(worker, 9))];
  await a.keep();
  return { before, others: idsOf(await a.claim(worker, 9)) };
});
