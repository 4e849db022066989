import { idsOf } from "../../support/sql.js";
import { schedule } from "./schedule.js";

/** Attack 1: the only waiter is in the hands of a cancel while the slot comes free. */
export const cancelOfWaiterAborts = schedule({ claimedMeanwhile: [] as number[], claimedAfter: [2] }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const limits = [await a.limit("tenant", { perKey: 1 })];
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await a.enqueue(stream, { n: 2, limits, keys: ["x"] });
  const first = await a.claim(worker, 5);
  await b.begin();
  await b.cancel([2]);
  const meanwhile = await a.step(worker, 5, first);
  await b.rollback();
  await a.keep();
  const after = await a.claim(worker, 5);
  return { claimedMeanwhile: idsOf(meanwhile.held), claimedAfter: idsOf(after) };
});

/** Attack 1: a completion that has handed its slot on is rolled back, or its connection cut. */
export const completionAborts = (how: "rollback" | "cut") =>
  schedule({ waited: true, claimed: [3], running: [1, 3] }, async (scene) => {
    const [a, b] = await scene.sessions(2);
    const limits = [await a.limit("tenant", { perKey: 2 })];
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { n: 4, limits, keys: ["x"] });
    const [one, two] = await a.claim(worker, 5);
    await b.begin();
    await b.step(worker, 0, [one!]);
    const other = a.step(worker, 5, [two!]);
    const waited = await scene.blocked(other);
    await (how === "cut" ? scene.cut(b) : b.rollback());
    const { held } = await other;
    return { waited, claimed: idsOf(held), running: await scene.running() };
  });

/** Attack 8: the head of an order key is in the hands of a cancel while its turn comes. */
export const headIsLocked = (how: "rollback" | "commit") =>
  schedule({ claimedMeanwhile: [] as number[], claimedAfter: how === "rollback" ? [2] : [3] }, async (scene) => {
    const [a, b] = await scene.sessions(2);
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { n: 3, order: "account-1" });
    const first = await a.claim(worker, 5);
    await b.begin();
    await b.cancel([2]);
    const meanwhile = await a.step(worker, 5, first);
    await b[how]();
    // A commit leaves a note of its own; only the keeper finds out about a rollback.
    if (how === "rollback") await a.keep();
    const after = await a.claim(worker, 5);
    return { claimedMeanwhile: idsOf(meanwhile.held), claimedAfter: idsOf(after) };
  });

/**
 * One slot of a lane is free and two completions look at it at once. The second must wait for the
 * first and count what it finds then: before, it would have seen the free slot too.
 */
export const twoHandOvers = schedule({ waited: true, running: [3, 4, 5] }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const limits = [await a.limit("tenant", { perKey: 3 })];
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await a.enqueue(stream, { n: 2, limits, keys: ["x"] });
  const [one, two] = await a.claim(worker, 5);
  await a.enqueue(stream, { n: 2, limits, keys: ["x"] });
  await a.begin();
  await a.step(worker, 5, [one!]);
  await b.enqueue(stream, { n: 2, limits, keys: ["x"] });
  const second = b.step(worker, 0, [two!]);
  const waited = await scene.blocked(second);
  await a.commit();
  await second;
  await a.claim(worker, 5);
  return { waited, running: await scene.running() };
});

/**
 * Attack 4: a step that frees a slot of lane T and finds a note for order lane K, beside one that
 * admits to K and then to T. A step that locks T before K deadlocks with the other.
 */
export const crossedLanes = schedule({ errors: [] as string[], claimed: [3], running: [3] }, async (scene) => {
  const [a, b, other] = await scene.sessions(3);
  const limits = [await a.limit("tenant", { perKey: 2 })];
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  for (const s of [a, b]) await s.rows("set deadlock_timeout = '100ms'");
  await a.enqueue(stream, { limits, keys: ["x"] });
  const first = await a.claim(worker, 5);
  await a.enqueue(stream, { order: "k" });
  const [head] = await a.claim(worker, 5);
  // Another session has locked lane K, so both steps wait for it.
  await other.begin();
  await other.rows("select from sluice.lane where id >> 60 = 1 for update");
  await a.enqueue(stream, { order: "k", limits, keys: ["x"] });
  const bStep = b.step(worker, 5, [head!]);
  await scene.blocked(bStep);
  await a.enqueue(stream, { order: "k", limits, keys: ["x"] });
  const aStep = a.step(worker, 5, first);
  await scene.blocked(aStep);
  await other.commit();
  const replies = await Promise.allSettled([aStep, bStep]);
  const errors = replies.flatMap((r) =>
    r.status === "rejected" ? [String((r.reason as { code?: string }).code)] : [],
  );
  const claimed = replies.flatMap((r) => (r.status === "fulfilled" ? idsOf(r.value.held) : []));
  return { errors, claimed, running: await scene.running() };
});

/**
 * A lane that is there when a step finds a note for it, and gone when the step comes to lock it: its
 * last holder has completed meanwhile. Lanes are taken ascending, so the step stands at a higher one.
 */
export const laneVanishes = (by: "order" | "perKey") =>
  schedule({ waited: true, claimed: [] as number[], claimedAfter: [2, 3] }, async (scene) => {
    const [a, b, other] = await scene.sessions(3);
    const limit = await a.limit("tenant", { perKey: 1 });
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    const named = by === "order" ? "1, key" : `2, '${limit}' || E'\\x1f' || key`;
    const [low, high] = (
      await a.rows<{ key: string }>(
        `select key from unnest('{x,y}'::text[]) key, sluice.setting where name = 'lane_secret'
          order by sluice.lane_id(${named}, value)`,
      )
    ).map((r) => r.key) as [string, string];
    const enqueue = (key: string) =>
      a.enqueue(stream, by === "order" ? { order: key } : { limits: [limit], keys: [key] });
    await enqueue(low);
    const first = await a.claim(worker, 1);
    await enqueue(low);
    await enqueue(high);
    // A birth that will not happen, for which ours has to wait.
    await other.begin();
    await other.rows(`insert into sluice.lane select lanes[1], lane_limits[1], 1, 1 from sluice.task where id = 3`);
    const step = b.claim(worker, 5);
    const waited = await scene.blocked(step);
    // A cancel has locked waiter 2, so the completion finds no waiter and deletes the lane.
    await a.rows("delete from sluice.waiting where id = 2 returning *");
    await a.step(worker, 0, first);
    await a.rows(
      `insert into sluice.waiting select id, lanes[1], 0, rank, 0, 0, stream, gate, lanes, lane_limits from sluice.task where id = 2`,
    );
    await other.rollback();
    const claimed = idsOf(await step).filter((id) => id === 2);
    await a.claim(worker, 5);
    return { waited, claimed, claimedAfter: await scene.running() };
  });

/** An advisory lock at which a mutant's claim waits between two statements. */
export const HELD_OPEN = 7_318_007;

/**
 * The slot of an order key is free because its head was in a cancel's hands. Two claims check it at once:
 * the claim that has seen the free slot must be the one that takes it.
 */
export const twoLooksAtAnOrderKey = schedule({ running: [2] }, async (scene) => {
  const [a, b, c] = await scene.sessions(3);
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await a.enqueue(stream, { n: 3, order: "account-1" });
  const first = await a.claim(worker, 5);
  await c.begin();
  await c.cancel([2]);
  await a.step(worker, 0, first);
  await c.rollback();
  await a.value("select sluice.recall(10)");
  await c.begin();
  await c.rows(`select pg_advisory_xact_lock(${HELD_OPEN})`);
  await b.rows("set sluice_test.held_open = 'here'");
  const second = b.claim(worker, 5);
  await scene.blocked(second);
  await a.enqueue(stream, { order: "account-1" });
  await a.claim(worker, 5);
  await c.rollback();
  await second;
  return { running: await scene.running() };
});

/** The server gives up a completion that is neither committed nor rolled back. */
export const completionIsNotCommitted = schedule({ before: "0", inside: "10s", after: "0" }, async (scene) => {
  const [a] = await scene.sessions(1);
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await a.enqueue(stream);
  const [held] = await a.claim(worker, 1);
  const patience = () => a.value<string>("select current_setting('idle_in_transaction_session_timeout')");
  const before = await patience();
  await a.begin();
  await a.settleInTransaction(worker, held!);
  const inside = await patience();
  await a.commit();
  return { before, inside, after: await patience() };
});

/** Two limits of one level: the next claim checks the second. */
export const twoLimitsOfOneLevel = schedule({ claimed: [1], next: [2] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const limits = [await a.limit("tenant", { perKey: 1 }), await a.limit("region", { perKey: 1 })];
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await a.enqueue(stream, { n: 2, limits, keys: ["x", "y"] });
  const held = [...(await a.claim(worker, 5)), ...(await a.claim(worker, 5))];
  const next = await a.step(worker, 5, held);
  const more = await a.claim(worker, 5);
  return { claimed: idsOf(held), next: [...idsOf(next.held), ...idsOf(more)] };
});

/** A waiter that is being handed a slot just now: a cancel neither waits for it nor loses it. */
export const cancelBesideHandOver = schedule(
  { waited: false, first: ["moving"], second: ["cancelled"], claimed: [3] },
  async (scene) => {
    const [a, b] = await scene.sessions(2);
    const limits = [await a.limit("tenant", { perKey: 1 })];
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { n: 3, limits, keys: ["x"] });
    const held = await a.claim(worker, 5);
    await a.begin();
    await a.step(worker, 0, held);
    const cancel = b.cancel([2]);
    const waited = await scene.blocked(cancel);
    if (waited) await a.commit();
    const first = await cancel;
    if (!waited) await a.commit();
    const second = await b.cancel([2]);
    return { waited, first, second, claimed: idsOf(await a.claim(worker, 5)) };
  },
);

/** A task of a type that no worker serves leaves the lanes of its limits, but not its order key. */
export const unservedKeepsOrder = schedule(
  { beside: [3], overtakes: [] as number[], served: [1], next: [2] },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const limits = [await a.limit("tenant", { perKey: 1 })];
    const unserved = await a.type("unserved", { limits });
    const stream = await a.type("t", { limits });
    const worker = await a.register([stream]);
    await a.keep();
    await a.enqueue(unserved, { limits, keys: ["x"], order: "k" });
    await a.enqueue(stream, { order: "k" });
    await a.enqueue(stream, { limits, keys: ["x"] });
    const beside: number[] = [];
    for (let i = 0; i < 4; i++) {
      beside.push(...idsOf(await a.claim(worker, 5)));
      await a.keep();
    }
    const both = await a.register([unserved, stream]);
    const held = await a.rows<{ id: string; claim: string }>("select id, claim from sluice.running");
    await a.step(
      worker,
      0,
      held.map((h) => ({ id: Number(h.id), token: h.claim })),
    );
    await a.keep();
    const served = await a.claim(both, 5);
    const next = await a.step(both, 5, served);
    return {
      beside: beside.filter((id) => id !== 2),
      overtakes: beside.filter((id) => id === 2),
      served: idsOf(served),
      next: idsOf(next.held),
    };
  },
);
