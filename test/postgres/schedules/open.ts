import { idsOf, refusal } from "../../support/sql.js";
import { schedule } from "./schedule.js";

/** A user's transaction has enqueued into every lane and gate there is, and stays open for long. */
export const enqueueStaysOpen = schedule({ blocked: [] as string[], claimedAfter: [5] }, async (scene) => {
  const [user, a] = await scene.sessions(2);
  const limits = [
    await a.limit("tenant", { perKey: 1 }),
    await a.limit("region", { total: 5 }),
    await a.limit("mail", { total: 5 }),
  ];
  const place = { limits, keys: ["x"], order: "k" };
  const stream = await a.type("t", { limits, concurrency: 5 });
  const worker = await a.register([stream]);
  await a.enqueue(stream, { n: 3, ...place });
  await a.enqueue(stream, { delayMs: -1, ...place });
  await a.admit();
  await user.begin();
  await user.enqueue(stream, { n: 1, ...place });
  await user.enqueue(stream, { delayMs: 3_600_000, ...place });
  const blocked: string[] = [];
  const beside = async <T>(name: string, work: Promise<T>): Promise<T> => {
    if (await scene.blocked(work)) {
      blocked.push(name);
      await user.rollback();
    }
    return work;
  };
  for (let i = 0; i < 4; i++) await a.admit();
  const held = await beside("claim", a.claim(worker, 5));
  const more = await beside("step", a.step(worker, 5, held));
  await beside("settle", a.settle(worker, "retry", more.held));
  await beside("due", a.due());
  await beside("set", a.setLimit("tenant", { perKey: 2 }));
  await beside("set", a.setLimit("mail", { total: 2 }));
  await beside("cancel", a.cancel([1, 2, 3, 4]));
  await beside("register", a.register([stream]));
  await beside("pause", a.value("select sluice.pause_queue('default', false)"));
  await beside("declare", a.type("t", { limits, concurrency: 7, sync: true }));
  await beside("reap", a.reap());
  await beside("beat", a.beat(worker, 5));
  await beside("enqueue", a.enqueue(stream, place));
  await beside("prune", a.value("select pruned from sluice.prune_done(0, 0, 0)"));
  await user.commit();
  const after: number[] = [];
  for (let i = 0; i < 4; i++) after.push(...idsOf(await a.claim(worker, 5)));
  return { blocked, claimedAfter: after };
});

/** A user's transaction is the first that needs two totals together, and stays open; others need them too. */
export const newSetStaysOpen = schedule({ blocked: false, claimed: [2, 1] }, async (scene) => {
  const [user, a] = await scene.sessions(2);
  const limits = [await a.limit("region", { total: 1 }), await a.limit("mail", { total: 1 })];
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await user.begin();
  await user.enqueue(stream, { limits });
  const second = a.enqueue(stream, { limits });
  const blocked = await scene.blocked(second);
  if (blocked) await user.commit();
  await second;
  const held = await a.claim(worker, 5);
  if (!blocked) await user.commit();
  // Another id of the same set counts in the same totals.
  const claimed = [...idsOf(held), ...idsOf(await a.claim(worker, 5))];
  const { held: next } = await a.step(worker, 5, held);
  return { blocked, claimed: [...claimed, ...idsOf(next)] };
});

/** Two serializable transactions, each with an idempotency key of its own. */
export const serializableKeys = schedule({ first: "accepted", second: "accepted" }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const stream = await a.type("t");
  const enqueue = "select sluice.enqueue_many($1, 0, 1, '1', p_idempotency => $2)";
  await a.begin("serializable");
  await b.begin("serializable");
  await a.value(enqueue, [stream, "one"]);
  await b.value(enqueue, [stream, "two"]);
  return { first: await refusal(a.commit()), second: await refusal(b.commit()) };
});
