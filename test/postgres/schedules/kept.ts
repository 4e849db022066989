import { idsOf, type Held, type Session } from "../../support/sql.js";
import { schedule } from "./schedule.js";

/**
 * A task needs slots of two totals of one slot each, and both are used in turn by tasks that need one. Every settle takes
 * the slot along to the next of its kind, so the two are never free at once. turn: one such settle of both, and how many
 * tasks it has started.
 */
export async function twoBusyTotals(a: Session) {
  const [left, right] = [await a.limit("left", { total: 1 }), await a.limit("right", { total: 1 })];
  const one = await a.type("one", { limits: [left] });
  const two = await a.type("two", { limits: [right] });
  const both = await a.type("both", { limits: [left, right] });
  const mine = await a.register([one]);
  const other = await a.register([two]);
  const third = await a.register([both]);
  await a.enqueue(one, { n: 4, limits: [left] });
  await a.enqueue(two, { n: 4, limits: [right] });
  let lefts = await a.claim(mine, 1);
  let rights = await a.claim(other, 1);
  await a.enqueue(both, { limits: [left, right], priority: 5 });
  const turn = async (): Promise<number> => {
    lefts = (await a.step(mine, 1, lefts)).held;
    rights = (await a.step(other, 1, rights)).held;
    return lefts.length + rights.length;
  };
  return { third, turn };
}

export const neverBothFree = schedule({ first: [9], others: 4 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const { third, turn } = await twoBusyTotals(a);
  let others = 2 + (await turn());
  await a.keep();
  await scene.moveClock(1_500);
  await a.keep();
  others += await turn();
  return { first: idsOf(await a.claim(third, 1)), others };
});

/** The one slot of a total goes from hand to hand while a suspect needs it. */
export const suspectAtABusyTotal = schedule({ suspect: [1] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const limits = [await a.limit("pool", { total: 1 })];
  const stream = await a.type("t", { limits });
  const mine = await a.register([stream]);
  const empty = await a.register([stream]);
  await a.enqueue(stream, { n: 9, limits });
  await a.rows(`with gone as (delete from sluice.gated where id = 1 returning *)
    insert into sluice.suspect (id, stream, attempt, lanes) select id, stream, attempt, lanes from gone`);
  await a.rows("insert into sluice.crash values (1, '{1,2,3}')");
  let held = await a.claim(mine, 1);
  await a.rows("update sluice.worker set draining = true where id = $1", [mine.id]);
  await a.beat(empty, 100);
  await a.keep();
  for (let i = 0; i < 3; i++) held = (await a.step(mine, 1, held)).held;
  const got = await a.rows<Held>("select id::int from sluice.claim_suspect($1, 99, 1)", [empty.id]);
  return { suspect: idsOf(got) };
});

/** A slot is kept for a task that needs two totals, and the step that frees it could claim the task. */
export const freedForIt = schedule({ claimed: [2], kept: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const [left, right] = [await a.limit("left", { total: 1 }), await a.limit("right", { total: 1 })];
  const stream = await a.type("t", { limits: [left, right] });
  const worker = await a.register([stream]);
  await a.enqueue(stream, { limits: [left] });
  const held = await a.claim(worker, 1);
  await a.enqueue(stream, { limits: [left, right] });
  await a.claim(worker, 1);
  await a.keep();
  await scene.moveClock(1_100);
  await a.keep();
  const { held: next } = await a.step(worker, 1, held);
  const kept = await a.value<number>("select count(*)::int from sluice.gate where kept_for is not null");
  return { claimed: idsOf(next), kept };
});

/** Of more than a hundred sets of totals the oldest has the task that is first at all of its totals. */
export const oldestSet = schedule({ kept: [2] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const shared = await a.limit("shared", { total: 1 });
  const other = await a.type("other", { limits: [shared] });
  const stream = await a.type("t");
  const groups = await a.rows<{ id: number }>(
    "select sluice.declare_limit('group-' || i, 1, null) as id from generate_series(1, 150) i",
  );
  await a.rows("select sluice.declare_use($1, array[g]) from unnest($2::int[]) g", [
    stream,
    [...groups.map(({ id }) => id), shared],
  ]);
  const worker = await a.register([other, stream], 1_000);
  await a.enqueue(other, { limits: [shared] });
  await a.claim(worker, 1);
  await a.enqueue(stream, { limits: [groups[0]!.id, shared], priority: 5 });
  for (const { id } of groups.slice(1)) await a.enqueue(stream, { limits: [id, shared] });
  let kept: number[] = [];
  for (let i = 1; i < 60 && kept.length === 0; i++) {
    await a.keep();
    await scene.moveClock(1_100 * i);
    await a.beat(worker, 100);
    await a.keep();
    kept = idsOf(await a.rows("select distinct kept_for::int as id from sluice.gate where kept_for is not null"));
  }
  return { kept };
});

/** A keeper that has moved lanes comes to the pulse, which another keeper has changed and not committed. */
export const besideThePulse = schedule({ waited: false }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const total = await a.limit("total", { total: 1 });
  const stream = await a.type("one", { limits: [total] });
  await a.enqueue(stream, { limits: [total] });
  await a.begin();
  await a.rows("update sluice.pulse set turn = turn + 1");
  const kept = b.rows("select sluice.keep_slots()");
  const waited = await scene.blocked(kept);
  await a.commit();
  await kept;
  return { waited };
});
