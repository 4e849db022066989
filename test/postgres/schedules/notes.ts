import { idsOf, type Session, type TestWorker } from "../../support/sql.js";
import { schedule } from "./schedule.js";

// More than one look takes.
const LOOK = 500;
const BACKLOG = 5 * LOOK;

async function stage(a: Session): Promise<{ worker: TestWorker; stream: number }> {
  const stream = await a.type("t");
  return { stream, worker: await a.register([stream], 10_000) };
}

/** n tasks in one statement, each with an order key of its own, so that each leaves a note. */
function spread(a: Session, stream: number, n: number, from: number): Promise<unknown> {
  return a.rows(
    `select ids from sluice.enqueue_many($1, 0, 25, array_to_string(array_fill('{}'::text, array[$2::int]), E'\\x1e'),
      p_orders => (select string_agg('key-' || i, E'\\x1e' order by i) from generate_series($3::int, $3 + $2 - 1) i))`,
    [stream, n, from],
  );
}

const notes = (a: Session): Promise<number> => a.value("select count(*)::int from sluice.dirty");

/** An urgent task is enqueued behind the notes of thousands of others. */
export const backlogOfNotes = schedule({ claimed: "the urgent task" }, async (scene) => {
  const [a] = await scene.sessions(1);
  const { worker, stream } = await stage(a);
  await spread(a, stream, BACKLOG, 1);
  await a.enqueue(stream, { order: "urgent", priority: 100 });
  const [first] = await a.claim(worker, 1);
  return { claimed: first?.id === BACKLOG + 1 ? "the urgent task" : "another" };
});

/** As many notes come between two looks as one look takes of the newest. */
export const freshNotesKeepComing = schedule({ left: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const { worker, stream } = await stage(a);
  await spread(a, stream, 2 * LOOK, 1);
  const fresh = LOOK - LOOK / 4;
  for (let i = 0; i < 8; i++) {
    await spread(a, stream, fresh, 10_000 + i * LOOK);
    await a.claim(worker, 1);
  }
  const left = await a.value<number>(
    `select count(*)::int from sluice.dirty d join sluice.task t on t.lanes[1] = d.lane where t.id <= ${2 * LOOK}`,
  );
  return { left };
});

/**
 * A transaction that stays open has cancelled the waiters of several lanes whose slots come free. They are
 * not checked again before it has ended, and then they are.
 */
export const transactionStaysOpen = (by: "order" | "perKey", savepoint = false) =>
  schedule(
    {
      notes: [0, 0, 0],
      postponed: [3, 3, 3],
      kept: [0, 0],
      meanwhile: [] as number[],
      after: [4, 5, 6],
    },
    async (scene) => {
      const [a, user] = await scene.sessions(2);
      const { worker, stream } = await stage(a);
      const limits = [await a.limit("tenant", { perKey: 1 })];
      const enqueue = (key: string) => a.enqueue(stream, by === "order" ? { order: key } : { limits, keys: [key] });
      for (let i = 0; i < 2; i++) for (const key of ["x", "y", "z"]) await enqueue(key);
      const held = await a.claim(worker, 10);
      await user.begin();
      if (savepoint) await user.rows("savepoint s");
      await user.cancel([4, 5, 6]);
      if (savepoint) await user.rows("release savepoint s");
      const seen = { notes: [] as number[], postponed: [] as number[], kept: [] as number[] };
      const look = async (): Promise<void> => {
        seen.notes.push(await notes(a));
        seen.postponed.push(await a.value("select count(*)::int from sluice.postponed"));
      };
      const meanwhile = idsOf((await a.step(worker, 10, held)).held);
      await look();
      for (let i = 0; i < 2; i++) {
        meanwhile.push(...idsOf(await a.claim(worker, 10)));
        seen.kept.push(await a.keep());
        await look();
      }
      await user.rollback();
      await a.keep();
      return { ...seen, meanwhile, after: idsOf(await a.claim(worker, 10)) };
    },
  );

/** The same, and tasks join the line of the locked head: still one row for the lane. */
export const joinedBehindLockedHead = schedule({ notes: 0, postponed: 1, after: [2], last: [3] }, async (scene) => {
  const [a, user] = await scene.sessions(2);
  const { worker, stream } = await stage(a);
  await a.enqueue(stream, { n: 2, order: "x" });
  const held = await a.claim(worker, 10);
  await user.begin();
  await user.cancel([2]);
  await a.step(worker, 10, held);
  for (let i = 0; i < 3; i++) {
    await a.enqueue(stream, { order: "x" });
    await a.claim(worker, 10);
  }
  const seen = {
    notes: await notes(a),
    postponed: await a.value<number>("select count(*)::int from sluice.postponed"),
  };
  await user.rollback();
  await a.keep();
  const next = await a.claim(worker, 10);
  return { ...seen, after: idsOf(next), last: idsOf((await a.step(worker, 10, next)).held) };
});

/** Two transactions have a waiter each; the one that began later ends first. */
export const twoStayOpen = schedule({ afterLater: [4], afterBoth: [3] }, async (scene) => {
  const [a, one, two] = await scene.sessions(3);
  const { worker, stream } = await stage(a);
  const limits = [await a.limit("tenant", { perKey: 2 })];
  await a.enqueue(stream, { n: 4, limits, keys: ["x"] });
  const held = await a.claim(worker, 10);
  await one.begin();
  await one.cancel([3]);
  await two.begin();
  await two.cancel([4]);
  await a.step(worker, 10, held);
  await two.rollback();
  await a.keep();
  const afterLater = idsOf(await a.claim(worker, 10));
  await one.rollback();
  await a.keep();
  return { afterLater, afterBoth: idsOf(await a.claim(worker, 10)) };
});

/** The cancel is committed: the next claim starts the task behind it, without a keeper. */
export const cancelIsCommitted = schedule({ meanwhile: [] as number[], after: [3] }, async (scene) => {
  const [a, user] = await scene.sessions(2);
  const { worker, stream } = await stage(a);
  await a.enqueue(stream, { n: 3, order: "x" });
  const held = await a.claim(worker, 10);
  await user.begin();
  await user.cancel([2]);
  const meanwhile = idsOf((await a.step(worker, 10, held)).held);
  await user.commit();
  return { meanwhile, after: idsOf(await a.claim(worker, 10)) };
});

/** Thousands of keys have only tasks of a paused queue: they give the keeper nothing to do. */
export const stuckKeys = schedule({ looked: true }, async (scene) => {
  const [a] = await scene.sessions(1);
  const tenant = await a.limit("tenant", { perKey: 2 });
  const x = await a.type("x", { limits: [tenant], queue: "q" });
  const y = await a.type("y", { limits: [tenant] });
  await a.register([x, y]);
  await a.value("select sluice.pause_queue('q', true)");
  await a.value("select sluice.keep_lanes(100)");
  await a.rows("select sluice.enqueue_many($1, 0, 25, '{}', array[$2::int], 'k' || i) from generate_series(1, 400) i", [
    x,
    tenant,
  ]);
  const looked: number[] = [];
  for (let i = 0; i < 16; i++) looked.push(await a.value("select sluice.keep_lanes(100)"));
  return { looked: looked.slice(10).every((n) => n < 100) };
});

/** The waiter of a cancel that rolled back, beside thousands of keys whose tasks are stuck. */
export const rolledBackBeside = schedule({ claimed: [2] }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const tenant = await a.limit("tenant", { perKey: 1 });
  const pool = await a.limit("pool", { total: 1 });
  const x = await a.type("x", { limits: [tenant, pool] });
  const y = await a.type("y", { limits: [tenant] });
  const worker = await a.register([x, y]);
  await a.enqueue(x, { limits: [tenant, pool], keys: ["o"] });
  await a.claim(worker, 1);
  const cancelled = await a.enqueue(y, { limits: [tenant], keys: ["z"] });
  await b.begin();
  await b.cancel(cancelled);
  await a.admit();
  await a.rows("insert into sluice.stuck (stream, gate) values ($1, $2)", [x, pool]);
  await a.rows(
    "select sluice.enqueue_many($1, 0, 25, '{}', array[$2::int, $3::int], 'k' || i) from generate_series(1, 600) i",
    [x, tenant, pool],
  );
  // After a second a stuck kind may try again, which would recall its lanes: on a busy machine that is soon over.
  const keepLanes = async (max: number): Promise<void> => {
    await a.rows("update sluice.stuck set at = sluice.clock()");
    await a.value("select sluice.keep_lanes($1)", [max]);
  };
  for (let i = 0; i < 9; i++) await keepLanes(100);
  await b.rollback();
  // About 100 lanes are postponed for the stuck kind: more than 80, so that their place in the list decides.
  await keepLanes(80);
  return { claimed: idsOf(await a.claim(worker, 1)) };
});

/** A transaction that is to be prepared asks for no notification. */
export const quiet = schedule({ heard: [] as string[] }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const stream = await a.type("t");
  await a.register([stream]);
  await a.rows("update sluice.worker set asleep = true");
  await a.rows("select * from sluice.keeper_poll(5, 2500, 1000, 1000)");
  const ear = await b.ear();
  await a.begin();
  await a.rows("set local sluice.ring = off");
  await a.enqueue(stream);
  await a.enqueue(stream, { delayMs: 500 });
  await a.commit();
  return { heard: await ear() };
});

/** Two kinds of a stream are stuck at a key, and one of them can run again. */
export const oneOfTwoKinds = schedule({ before: [] as number[], after: [2] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const tenant = await a.limit("tenant", { perKey: 2 });
  const [mail, bulk] = [await a.limit("mail", { total: 0 }), await a.limit("bulk", { total: 0 })];
  const stream = await a.type("t", { limits: [tenant, mail, bulk] });
  const worker = await a.register([stream]);
  await a.keep();
  await a.enqueue(stream, { limits: [tenant, mail], keys: ["k"] });
  await a.enqueue(stream, { limits: [tenant, bulk], keys: ["k"] });
  const before = idsOf(await a.claim(worker, 5));
  await a.setLimit("bulk", { total: 1 });
  await a.keep();
  return { before, after: idsOf(await a.claim(worker, 5)) };
});
