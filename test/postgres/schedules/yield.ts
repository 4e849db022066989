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
export const fullTotalKeepsNoSlots = schedule({ before: [] as number[], others: [7, 8], next: [2] }, async (scene) => {
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
});

/** Tasks of one type have the slots of a tenant and wait for an account: the tenant's next one needs another account. */
export const otherSecondKey = schedule({ before: [1], other: [9], next: [10], back: [2] }, async (scene) => {
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
});

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

/** A kind was stuck, and its workers have no permit free: they replace what ends, also by tasks of that kind. */
export const fullWorkers = schedule({ ran: true }, async (scene) => {
  const { a, x, y, tenant, pool, worker } = await stage(scene);
  await a.enqueue(x, { limits: [tenant, pool], keys: ["other"] });
  const first = await a.claim(worker, 10);
  const stuck = await a.enqueue(x, { n: 5, limits: [tenant, pool], keys: ["t"] });
  await a.enqueue(y, { n: 40, limits: [tenant], keys: ["t"] });
  await a.claim(worker, 10);
  await a.keep();
  await scene.moveClock(600);
  await a.keep();
  let held = await a.claim(worker, 10);
  await a.beat(worker, 0);
  await a.step(worker, 0, first);
  const ran: number[] = [];
  for (let i = 0; i < 6; i++) {
    await a.keep();
    held = (await a.step(worker, 2, held)).held;
    ran.push(...idsOf(held));
  }
  return { ran: stuck.some((id) => ran.includes(id)) };
});

/** Tasks of x need three keys, of which the last is full; y needs the first. */
export const thirdKey = schedule({ others: 2 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const limits = [
    await a.limit("first", { perKey: 2 }),
    await a.limit("second", { perKey: 5 }),
    await a.limit("third", { perKey: 1 }),
  ];
  const x = await a.type("x", { limits });
  const y = await a.type("y", { limits: limits.slice(0, 1) });
  const worker = await a.register([x, y]);
  await a.enqueue(x, { n: 40, limits, keys: ["t", "u", "v"] });
  const wanted = await a.enqueue(y, { n: 2, limits: limits.slice(0, 1), keys: ["t"] });
  for (let i = 0; i < 4; i++) await a.claim(worker, 9);
  let others = 0;
  for (let i = 0; i < 4; i++) {
    await a.keep();
    const held = await a.claim(worker, 9);
    others += held.filter(({ id }) => wanted.includes(id)).length;
    if (others === 1) await a.step(worker, 0, held);
  }
  return { others };
});

/** A task has passed its first key and waits at a second with room, which no claim has checked yet. */
export const onItsWay = schedule({ first: [1] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const [one, two] = [await a.limit("one", { perKey: 1 }), await a.limit("two", { perKey: 5 })];
  const x = await a.type("x", { limits: [one, two] });
  const y = await a.type("y", { limits: [one] });
  const worker = await a.register([x, y]);
  await a.enqueue(x, { limits: [one, two], keys: ["t", "u"] });
  await a.enqueue(y, { n: 5, limits: [one], keys: ["t"] });
  await a.rows("select sluice.keep_lanes(1)");
  await a.rows("select sluice.yield(1000)");
  return { first: idsOf([...(await a.claim(worker, 1)), ...(await a.claim(worker, 1))]) };
});

/** A task gave its key back while it stood at a busy total, whose slot goes from hand to hand. */
export const busyTotal = schedule({ others: [5, 6], ran: true }, async (scene) => {
  const [a] = await scene.sessions(1);
  const tenant = await a.limit("tenant", { perKey: 1 });
  const pool = await a.limit("pool", { total: 1 });
  const x = await a.type("x", { limits: [tenant, pool] });
  const y = await a.type("y", { limits: [tenant] });
  const z = await a.type("z", { limits: [pool] });
  const worker = await a.register([x, y, z]);
  await a.enqueue(z, { n: 3, limits: [pool] });
  let held = await a.claim(worker, 1);
  const [mine] = await a.enqueue(x, { limits: [tenant, pool], keys: ["t"] });
  await a.admit();
  const others = await a.enqueue(y, { n: 2, limits: [tenant], keys: ["t"] });
  await a.enqueue(z, { n: 30, limits: [pool] });
  const ran: number[] = [];
  for (let i = 1; i <= 12; i++) {
    await scene.moveClock(i * 600);
    await a.beat(worker, 50);
    await a.keep();
    held = (await a.step(worker, 3, held)).held;
    ran.push(...idsOf(held));
  }
  return { others: others.filter((id) => ran.includes(id)), ran: ran.includes(mine!) };
});

/** Far more tasks hold keys at a full total than a keeper examines; tasks of two of the keys could run. */
export const manyHolders = schedule({ others: 2 }, async (scene) => {
  const { a, x, y, tenant, pool, worker } = await stage(scene);
  await a.setLimit("tenant", { perKey: 1 });
  await a.rows(
    `select sluice.enqueue_many($1, 0, 25, '{}', array[$2::int, $3::int], 'k' || i) from generate_series(1, 300) i`,
    [x, tenant, pool],
  );
  await a.admit();
  await a.claim(worker, 1);
  for (const key of ["k40", "k299"]) await a.enqueue(y, { limits: [tenant], keys: [key] });
  let others = 0;
  for (let i = 1; i < 60 && others < 2; i++) {
    await a.rows("select sluice.keep_lanes(50)");
    await scene.moveClock(600 * i);
    await a.beat(worker, 50);
    const rows = await a.rows("select id from sluice.step($1, $2, array[$3::int], 10)", [worker.id, 77 + i, y]);
    others += rows.length;
  }
  return { others };
});

/** Thousands of kinds of a type without keys come before the one whose tasks hold theirs. */
export const manyKinds = schedule({ others: [4] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const plain = await a.type("plain");
  await a.rows(
    `with made as (select sluice.declare_limit('group-' || i, 1, null) as id from generate_series(1, 1100) i)
      select sluice.declare_use($1, array[id]), sluice.enqueue_many($1, 0, 25, '{}', array[id]) from made`,
    [plain],
  );
  const tenant = await a.limit("tenant", { perKey: 2 });
  const pool = await a.limit("pool", { total: 1 });
  const x = await a.type("x", { limits: [tenant, pool] });
  const y = await a.type("y", { limits: [tenant] });
  const worker = await a.register([x, y]);
  await a.enqueue(x, { limits: [tenant, pool], keys: ["other"] });
  await a.claim(worker, 1);
  const last = await a.value<number>("select last_value::int from sluice.task_id");
  await a.enqueue(x, { n: 2, limits: [tenant, pool], keys: ["t"] });
  await a.admit();
  await a.enqueue(y, { limits: [tenant], keys: ["t"] });
  for (let i = 1; i < 4; i++) {
    await a.rows("select sluice.keep_lanes(500)");
    await scene.moveClock(600 * i);
    await a.beat(worker, 50);
  }
  return { others: idsOf(await a.claim(worker, 10)).map((id) => id - last + 1) };
});
