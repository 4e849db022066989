import type { Held, Scene, Session, TestWorker } from "../../support/sql.js";
import { schedule } from "./schedule.js";

const GROUPS = 300;

interface Crowd {
  readonly stream: number;
  readonly worker: TestWorker;
  /** The limit of each group. */
  readonly groups: readonly number[];
}

/** A type whose tasks use many groups of one slot each. */
async function crowd(a: Session, n = GROUPS): Promise<Crowd> {
  const stream = await a.type("t");
  const made = await a.rows<{ id: number }>(
    "select sluice.declare_limit('group-' || i, 1, null) as id from generate_series(1, $1::int) i",
    [n],
  );
  const groups = made.map(({ id }) => id);
  await a.rows("select sluice.declare_use($1, array[g]) from unnest($2::int[]) g", [stream, groups]);
  return { stream, worker: await a.register([stream], 10_000), groups };
}

/** Enqueues this many tasks for each of these groups. */
async function fill(a: Session, { stream }: Crowd, groups: readonly number[], each: number): Promise<void> {
  await a.rows(
    `select sluice.enqueue_many($1, 0, 25, array_to_string(array_fill('{}'::text, array[$3::int]), e'\\x1e'), array[g])
      from unnest($2::int[]) g`,
    [stream, groups, each],
  );
}

/** Claims until no more tasks come. */
async function saturate(a: Session, { worker }: Crowd): Promise<number> {
  let running = 0;
  for (let empty = 0; empty < 3;) {
    const held = await a.claim(worker, 100);
    running += held.length;
    empty = held.length === 0 ? empty + 1 : 0;
  }
  return running;
}

async function pagesOfClaim(a: Session, { worker, stream }: Crowd): Promise<number> {
  const read = async (): Promise<number> => {
    const rows = await a.rows<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
      `explain (analyze, buffers, format json) select * from sluice.step($1, 99, array[$2::int], 10)`,
      [worker.id, stream],
    );
    const plan = rows[0]!["QUERY PLAN"][0].Plan;
    return plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!;
  };
  const looks = [await read(), await read(), await read()];
  return Math.min(...looks);
}

/** All groups but one are full, and hold more tasks than a claim would walk. */
export const freeGroup = schedule({ many: true, running: GROUPS - 1, free: 1, left: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const c = await crowd(a);
  await fill(a, c, c.groups.slice(0, -1), 3);
  const running = await saturate(a, c);
  await fill(a, c, c.groups.slice(-1), 1);
  const free = (await a.claim(c.worker, 10)).length;
  const many = await a.value<boolean>("select many from sluice.stream");
  return { many, running, free, left: (await a.claim(c.worker, 10)).length };
});

/** A slot of one full group is returned in each possible way. */
function slotOf(how: (a: Session, c: Crowd, held: Held) => Promise<unknown>) {
  return schedule({ next: 1, more: 0 }, async (scene) => {
    const [a] = await scene.sessions(1);
    const c = await crowd(a);
    await fill(a, c, c.groups, 2);
    const first = (await a.claim(c.worker, 1))[0]!;
    await saturate(a, c);
    await how(a, c, first);
    const next = (await a.claim(c.worker, 10)).length;
    return { next, more: (await a.claim(c.worker, 10)).length };
  });
}

export const returnedSlots = {
  "a step that claims nothing": slotOf((a, c, held) => a.step(c.worker, 0, [held])),
  "a final failure": slotOf((a, c, held) => a.settle(c.worker, "fail", [held])),
  "a completion in a transaction": slotOf((a, c, held) => a.settleInTransaction(c.worker, held)),
  "a raised number": slotOf(async (a, _, held) => {
    const name = await a.value<string>(
      "select l.name from sluice.limits l join sluice.task t on t.gate = l.id where t.id = $1",
      [held.id],
    );
    await a.setLimit(name, { total: 2 });
  }),
  "a dead worker": slotOf(async (a, c, held) => {
    const dead = await a.register([c.stream]);
    await a.rows("update sluice.running set worker = $1 where id = $2", [dead.id, held.id]);
    await a.rows("update sluice.worker set expires_at = '-infinity' where id = $1", [dead.id]);
    await a.reap();
  }),
};

/** A step settles three tasks and claims one: it gives two slots back, which another type waits for. */
export const slotsLeft = schedule({ claimed: 1, next: 2, more: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const c = await crowd(a);
  await fill(a, c, c.groups.slice(0, 3), 1);
  await fill(a, c, c.groups.slice(0, 1), 1);
  const first = await a.claim(c.worker, 3);
  const other = await a.type("u");
  await a.rows("select sluice.declare_use($1, array[g]) from unnest($2::int[]) g", [other, c.groups]);
  const theirs = { ...c, stream: other, worker: await a.register([other], 10_000) };
  await fill(a, theirs, c.groups, 1);
  await saturate(a, theirs);
  // No worker of the other type has room now: the step need not compare with it.
  await a.beat(theirs.worker, 0);
  const claimed = (await a.step(c.worker, 1, first)).held.length;
  const next = (await a.claim(theirs.worker, 10)).length;
  return { claimed, next, more: (await a.claim(theirs.worker, 10)).length };
});

/** A step of a type with one total settles three tasks and claims one: a type with many groups waits for the other slots. */
export const slotsLeftOfOneTotal = schedule({ claimed: 1, next: 2, more: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const c = await crowd(a);
  const shared = c.groups.slice(0, 1);
  await a.setLimit("group-1", { total: 3 });
  const stream = await a.type("one");
  await a.rows("select sluice.declare_use($1, $2::int[])", [stream, shared]);
  const one = { stream, worker: await a.register([stream], 10), groups: shared };
  await fill(a, one, shared, 4);
  const first = await a.claim(one.worker, 3);
  await fill(a, c, shared, 2);
  await fill(a, c, c.groups.slice(1), 1);
  await saturate(a, c);
  // Without capacity, the other worker is not compared with.
  await a.beat(c.worker, 0);
  const claimed = (await a.step(one.worker, 1, first)).held.length;
  const next = (await a.claim(c.worker, 10)).length;
  return { claimed, next, more: (await a.claim(c.worker, 10)).length };
});

/** The slot is returned during a claim that has found its total full. */
export const missedSlot = schedule({ before: 0, after: 1 }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const c = await crowd(a);
  await fill(a, c, c.groups, 1);
  const first = (await a.claim(c.worker, 1))[0]!;
  await saturate(a, c);
  const group = await a.value<number>("select gate from sluice.task where id = $1", [first.id]);
  await fill(a, c, [group], 1);
  await b.begin();
  const before = (await b.claim(c.worker, 10)).length;
  await a.step(c.worker, 0, [first]);
  // A claim that finds enough elsewhere uses the note up: it sees nothing that this total blocks.
  await a.rows("delete from sluice.returned");
  await b.commit();
  return { before, after: (await a.claim(c.worker, 10)).length };
});

/** A group shared by thousands of sets: one slot of it opens one of them. */
export const sharedTotal = schedule({ running: 5, next: 1, more: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const c = await crowd(a, 150);
  const shared = await a.limit("shared", { total: 5 });
  await a.rows("select sluice.declare_use($1, array[$2::int])", [c.stream, shared]);
  for (const group of c.groups) await a.enqueue(c.stream, { limits: [group, shared], n: 2 });
  const held = await a.claim(c.worker, 5);
  const running = held.length + (await saturate(a, c));
  await a.step(c.worker, 0, held.slice(0, 1));
  const next = (await a.claim(c.worker, 10)).length;
  return { running, next, more: (await a.claim(c.worker, 10)).length };
});

/** Tasks wait at gates before their stream has its flag, so they have no notes. */
export const lateFlag = schedule({ claimed: 120 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const c = await crowd(a, 120);
  await fill(a, c, c.groups, 1);
  await a.rows("delete from sluice.waiting_kind");
  await a.keep();
  return { claimed: await saturate(a, c) };
});

/** A claim reads the note of a slot while another claim has locked the kind that it wakes. */
export const kindInHand = schedule({ meanwhile: 0, after: 1 }, async (scene) => {
  const [a, b, d] = await scene.sessions(3);
  const c = await crowd(a, 100);
  await fill(a, c, c.groups.slice(0, 1), 2);
  const first = (await a.claim(c.worker, 1))[0]!;
  await a.claim(c.worker, 1);
  await b.begin();
  await b.claim(c.worker, 1);
  await a.settle(c.worker, "fail", [first]);
  const meanwhile = (await d.claim(c.worker, 10)).length;
  await b.commit();
  return { meanwhile, after: (await a.claim(c.worker, 10)).length };
});

/** A row is taken for one too many while another claim deletes the first. */
export const rowsOfOneKind = schedule({ claimed: 1, after: 1 }, async (scene) => {
  const [a, b, d] = await scene.sessions(3);
  const c = await crowd(a, 100);
  const group = c.groups.slice(0, 1);
  await fill(a, c, group, 1);
  await a.step(c.worker, 0, await a.claim(c.worker, 1));
  await a.rows("delete from sluice.returned");
  await fill(a, c, c.groups.slice(1, 2), 2);
  await a.claim(c.worker, 1);
  await b.begin();
  await b.claim(c.worker, 10);
  await fill(a, c, group, 2);
  const held = await d.claim(c.worker, 1);
  await b.commit();
  await a.settle(c.worker, "fail", held);
  return { claimed: held.length, after: (await a.claim(c.worker, 10)).length };
});

/** Two types use a total; the second began to while a completion of the first was open. */
export const laterUse = schedule({ before: 0, after: 1 }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const c = await crowd(a, 100);
  const other = await a.type("u");
  const use = "select sluice.declare_use($1, array[g]) from unnest($2::int[]) g";
  await a.rows(use, [other, c.groups.slice(1)]);
  const worker = await a.register([c.stream, other], 1_000);
  await fill(a, c, c.groups.slice(0, 1), 1);
  const [held] = await a.claim(worker, 1);
  await b.begin();
  await b.settleInTransaction(worker, held!);
  await a.rows(use, [other, c.groups.slice(0, 1)]);
  await a.enqueue(other, { limits: c.groups.slice(0, 1) });
  for (let i = 0; i < 3; i++) await a.claim(worker, 5);
  await b.commit();
  await a.rows("delete from sluice.returned");
  const before = (await a.claim(worker, 5)).length;
  await a.keep();
  return { before, after: (await a.claim(worker, 5)).length };
});

interface Sharing extends Crowd {
  readonly shared: number;
}

/** The same with one more total that all of its tasks use. */
async function sharing(a: Session, total: number): Promise<Sharing> {
  const c = await crowd(a, 100);
  const shared = await a.limit("shared", { total });
  await a.rows("select sluice.declare_use($1, array[$2::int])", [c.stream, shared]);
  return { ...c, shared };
}

/** The slot of a shared total goes to the best task, whatever its group. */
export const bestOfAll = schedule({ got: ["high", "high", "high", "low"] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const { shared, groups, stream, worker } = await sharing(a, 1);
  await a.enqueue(stream, { limits: [groups[0]!, shared] });
  let held = await a.claim(worker, 1);
  const low = await a.enqueue(stream, { limits: [groups[1]!, shared], n: 9 });
  for (const group of groups.slice(90, 93)) await a.enqueue(stream, { limits: [group, shared], priority: 10 });
  for (let i = 0; i < 3; i++) await a.claim(worker, 1);
  const got: string[] = [];
  for (let i = 0; i < 4; i++) {
    await a.settle(worker, "fail", held);
    held = await a.claim(worker, 1);
    got.push(low.includes(held[0]?.id ?? 0) ? "low" : "high");
  }
  return { got };
});

/** A step uses the slot of a shared total that it has freed itself. */
export const ownSharedSlot = schedule({ claimed: 1 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const c = await sharing(a, 5);
  for (const group of c.groups) await a.enqueue(c.stream, { limits: [group, c.shared], n: 2 });
  const held = await a.claim(c.worker, 5);
  await saturate(a, c);
  return { claimed: (await a.step(c.worker, 1, held.slice(0, 1))).held.length };
});

/** A slot is kept for a task that stands at a full shared total. */
export const keptShared = schedule({ claimed: [2] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const { shared, groups, stream, worker } = await sharing(a, 1);
  await a.enqueue(stream, { limits: [groups[0]!, shared] });
  const held = await a.claim(worker, 1);
  await a.enqueue(stream, { limits: [groups[1]!, shared] });
  for (let i = 0; i < 3; i++) await a.claim(worker, 1);
  await a.keep();
  await scene.moveClock(1_100);
  await a.keep();
  await a.settle(worker, "fail", held);
  return { claimed: (await a.claim(worker, 1)).map(({ id }) => id) };
});

/** Of a hundred kinds at a shared total one can run: the others' groups are full. */
export const oneOfMany = schedule({ claimed: 1 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const { shared, groups, stream, worker } = await sharing(a, 1);
  const other = await a.type("z");
  await a.rows("select sluice.declare_use($1, array[g]) from unnest($2::int[]) g", [other, [...groups, shared]]);
  const theirs = await a.register([other], 1_000);
  await a.enqueue(other, { limits: [shared] });
  const held = await a.claim(theirs, 1);
  for (const group of groups) await a.enqueue(stream, { limits: [group, shared] });
  for (let i = 0; i < 6; i++) await a.claim(worker, 5);
  for (const group of groups.slice(0, -1)) await a.enqueue(other, { limits: [group] });
  for (let i = 0; i < 12; i++) await a.claim(theirs, 100);
  await a.settle(theirs, "fail", held);
  return { claimed: (await a.claim(worker, 5)).length };
});

/** A full group whose backlog goes round leaves no rows behind, nor do notes for a type that has no tasks. */
export const noGrowth = schedule({ kinds: 1, notes: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const c = await crowd(a, 100);
  const retired = await a.type("retired");
  await a.rows("select sluice.declare_use($1, array[g]) from unnest($2::int[]) g", [retired, c.groups]);
  const group = c.groups.slice(0, 1);
  await fill(a, c, group, 3);
  let held = await a.claim(c.worker, 1);
  for (let i = 0; i < 40; i++) {
    await fill(a, c, group, 1);
    await a.claim(c.worker, 1);
    await a.step(c.worker, 0, held);
    held = await a.claim(c.worker, 1);
  }
  await a.claim(c.worker, 1);
  await a.keep();
  const count = (table: string): Promise<number> => a.value(`select count(*)::int from sluice.${table}`);
  return { kinds: await count("waiting_kind"), notes: await count("returned where stream = 2") };
});

/** The pages that a claim reads do not grow with the number of full groups. */
export async function pagesBeside(scene: Scene, groups: number): Promise<number> {
  const [a] = await scene.sessions(1);
  const c = await crowd(a, groups);
  await fill(a, c, c.groups, 2);
  await saturate(a, c);
  await a.rows("vacuum analyze sluice.waiting_kind");
  return pagesOfClaim(a, c);
}
