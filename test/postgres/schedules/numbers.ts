import { idsOf, type Session, type Shape, type TestWorker } from "../../support/sql.js";
import { schedule } from "./schedule.js";

type Part = "total" | "perKey";

async function stage(
  a: Session,
  shape: Shape,
  n: number,
): Promise<{ worker: TestWorker; stream: number; limits: number[]; keys: string[] }> {
  const limits = [await a.limit("mail", shape)];
  const stream = await a.type("t", { limits });
  const worker = await a.register([stream]);
  const keys = shape.perKey === undefined ? [] : ["x"];
  if (n > 0) await a.enqueue(stream, { n, limits, ...(keys.length > 0 && { keys }) });
  return { worker, stream, limits, keys };
}

/**
 * Attack 7: five run, the number falls to two, and every slot that comes free is asked for again. A worker
 * that serves another type as well looks in another way.
 */
export const loweredWhileRunning = (part: Part, others: readonly string[] = []) =>
  schedule({ claimed: [0, 0, 0, 1, 1], running: 2 }, async (scene) => {
    const [a, b] = await scene.sessions(2);
    const { worker: alone, stream } = await stage(a, { [part]: 5 }, 20);
    const more = await Promise.all(others.map((type) => a.type(type)));
    const worker = others.length === 0 ? alone : await a.register([stream, ...more]);
    const held = await a.claim(worker, 5);
    await b.setLimit("mail", { [part]: 2 });
    const claimed: number[] = [];
    for (let i = 0; i < 5; i++) {
      const { held: next } = await a.step(worker, 5, [held.shift()!]);
      held.push(...next);
      claimed.push(next.length);
    }
    return { claimed, running: (await scene.running()).length };
  });

/** Attack 7, with a step that settles more tasks than the lowered number is exceeded by: the difference may follow. */
export const loweredByOne = schedule({ claimed: 2, running: 4 }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const { worker } = await stage(a, { total: 5 }, 20);
  const held = await a.claim(worker, 5);
  await b.setLimit("mail", { total: 4 });
  const { held: next } = await a.step(worker, 5, held.slice(0, 3));
  return { claimed: next.length, running: (await scene.running()).length };
});

/** Attack 7 with two totals, one of them lowered: a set, or one that is the type's own. */
export const loweredTotalOfTwo = (how: "set" | "own") =>
  schedule({ claimed: [0, 0, 0, 1, 1], running: 2 }, async (scene) => {
    const [a, b] = await scene.sessions(2);
    const mail = await a.limit("mail", { total: 5 });
    const limits = how === "set" ? [mail, await a.limit("pool", { total: 5 })] : [mail];
    const stream = await a.type("t", { limits, ...(how === "own" ? { concurrency: 5 } : {}) });
    const worker = await a.register([stream]);
    await a.enqueue(stream, { n: 20, limits });
    const held = await a.claim(worker, 5);
    await b.setLimit("mail", { total: 2 });
    const claimed: number[] = [];
    for (let i = 0; i < 5; i++) {
      const { held: next } = await a.step(worker, 5, [held.shift()!]);
      held.push(...next);
      claimed.push(next.length);
    }
    return { claimed, running: (await scene.running()).length };
  });

/** A step frees slots of two totals, and what comes next needs two, of which one is another. */
export const otherTotals = schedule({ claimed: 1, used: [1, 1, 0] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const left = await a.limit("left", { total: 1 });
  const right = await a.limit("right", { total: 1 });
  const third = await a.limit("third", { total: 1 });
  const first = await a.type("first", { limits: [left, third] });
  const next = await a.type("next", { limits: [left, right] });
  const worker = await a.register([first, next]);
  await a.enqueue(first, { limits: [left, third] });
  const held = await a.claim(worker, 1);
  await a.enqueue(next, { n: 2, limits: [left, right] });
  const { held: more } = await a.step(worker, 1, held);
  const used = await a.rows<{ used: number }>(
    `select (g.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0))::int as used
      from sluice.gate g order by g.id`,
  );
  return { claimed: more.length, used: used.map((g) => g.used) };
});

/** Attack 7: a lane whose last slot came back is gone; reborn, it must know the number in force. */
export const rebornAfterChange = schedule({ claimed: 1 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const { worker, stream, limits, keys } = await stage(a, { perKey: 5 }, 1);
  await a.step(worker, 0, await a.claim(worker, 5));
  await a.setLimit("mail", { perKey: 1 });
  await a.enqueue(stream, { n: 5, limits, keys });
  return { claimed: (await a.claim(worker, 5)).length };
});

/** Nothing may start after the number was set but what the number allows. */
async function startedAfter(scene: { running(): Promise<number[]> }, atSet: readonly number[]): Promise<number[]> {
  return (await scene.running()).filter((id) => !atSet.includes(id));
}

/** The barrier, wide gate: a step re-uses its own slots and has not committed. Its counter is not locked. */
export const setBesideReuse = schedule(
  { waited: true, startedAfterSet: [] as number[], claimedAfter: [0, 0] },
  async (scene) => {
    const [a, b] = await scene.sessions(2);
    const { worker } = await stage(a, { total: 3 }, 9);
    const held = await a.claim(worker, 3);
    await a.begin();
    const { held: more } = await a.step(worker, 2, held.slice(0, 2));
    const set = b.setLimit("mail", { total: 1 });
    const waited = await scene.blocked(set);
    if (waited) await a.commit();
    await set;
    const atSet = await scene.running();
    if (!waited) await a.commit();
    const startedAfterSet = await startedAfter(scene, atSet);
    const one = await a.step(worker, 5, [more[0]!]);
    const two = await a.step(worker, 5, [more[1]!]);
    return { waited, startedAfterSet, claimedAfter: [one.held.length, two.held.length] };
  },
);

/** The barrier, lanes: a step gives birth to a lane under the old number and has not committed. */
export const setBesideBirth = schedule(
  { waited: true, startedAfterSet: [] as number[], claimedAfter: [0, 0, 1] },
  async (scene) => {
    const [a, b] = await scene.sessions(2);
    const { worker } = await stage(a, { perKey: 3 }, 9);
    await a.begin();
    const held = await a.claim(worker, 3);
    const set = b.setLimit("mail", { perKey: 1 });
    const waited = await scene.blocked(set);
    if (waited) await a.commit();
    await set;
    const atSet = await scene.running();
    if (!waited) await a.commit();
    const startedAfterSet = await startedAfter(scene, atSet);
    const claimedAfter: number[] = [];
    for (const h of held) claimedAfter.push((await a.step(worker, 5, [h])).held.length);
    return { waited, startedAfterSet, claimedAfter };
  },
);

/** The barrier: a claim beside an uncommitted change must use the new number. */
export const claimBesideSet = (part: Part) =>
  schedule({ waited: true, claimed: 3 }, async (scene) => {
    const [a, b] = await scene.sessions(2);
    const { worker } = await stage(a, { [part]: 1 }, 9);
    await b.begin();
    await b.setLimit("mail", { [part]: 3 });
    const claim = a.claim(worker, 9);
    const waited = await scene.blocked(claim);
    await b.commit();
    return { waited, claimed: (await claim).length };
  });

/** A limit per key is lowered while three run and three more are through but not claimed. */
export const loweredPerKey = schedule(
  { atOnce: 0, waiting: 4, claimed: [0, 1, 1, 1, 1], started: [4, 5, 6, 7] },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const { worker, stream, limits, keys } = await stage(a, { perKey: 6 }, 7);
    const held = await a.claim(worker, 3);
    await a.setLimit("mail", { perKey: 2 });
    const atOnce = (await a.claim(worker, 5)).length;
    await a.keep();
    const waiting = await a.value<number>("select count(*)::int from sluice.waiting");
    await a.enqueue(stream, { limits, keys });
    const claimed: number[] = [];
    const started: number[] = [];
    for (let i = 0; i < 5; i++) {
      const next = held.shift();
      const reply = await a.step(worker, 5, next === undefined ? [] : [next]);
      held.push(...reply.held);
      started.push(...idsOf(reply.held));
      claimed.push(reply.held.length);
    }
    return { atOnce, waiting, claimed, started };
  },
);

/** Lets the keeper work until it finds nothing more to do. */
async function settled(a: Session): Promise<void> {
  for (let i = 0; i < 200; i++) if ((await a.keep()) === 0) return;
  throw new Error("the keeper finds no end");
}

const KEYS = 1_200;

/** Two tasks for each key, with more keys than one check of the lanes covers, and a number that changes. */
export const changedForManyKeys = (from: number, to: number) =>
  schedule({ before: [from, 2 - from], after: [to, 2 - to], left: 0 }, async (scene) => {
    const [a] = await scene.sessions(1);
    const { stream, limits } = await stage(a, { perKey: from }, 0);
    await a.rows(
      `select ids from sluice.enqueue_many($1, 0, 25, array_to_string(array_fill('{}'::text, array[$2::int]), E'\\x1e'),
        $3, (select string_agg('key-' || i % ($2 / 2), E'\\x1e' order by i) from generate_series(1, $2) i))`,
      [stream, 2 * KEYS, limits],
    );
    const perKey = async (): Promise<number[]> => {
      const count = "select array[(select count(*) from sluice.ready), (select count(*) from sluice.waiting)]::int[]";
      return (await a.value<number[]>(count)).map((n) => n / KEYS);
    };
    await settled(a);
    const before = await perKey();
    await a.setLimit("mail", { perKey: to });
    await settled(a);
    const left = await a.value<number>(
      "select ((select count(*) from sluice.changed) + (select count(*) from sluice.lowered) + (select count(*) from sluice.excess))::int",
    );
    return { before, after: await perKey(), left };
  });

/** Three tasks are through two limits per key, of which each is lowered in turn: two go back. */
export const loweredOneOfTwo = schedule({ waiting: [2, 2] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const limits = [await a.limit("one", { perKey: 3 }), await a.limit("two", { perKey: 3 })];
  const stream = await a.type("t", { limits });
  await a.register([stream]);
  await a.enqueue(stream, { n: 3, limits, keys: ["x", "y"] });
  const waiting: number[] = [];
  for (const name of ["one", "two"]) {
    await settled(a);
    await a.setLimit(name, { perKey: 1 });
    await settled(a);
    waiting.push(await a.value("select count(*)::int from sluice.waiting"));
    await a.setLimit(name, { perKey: 3 });
  }
  // Which of the two is passed first is not for a test to say.
  return { waiting: waiting.toSorted((x, y) => x - y) };
});

/**
 * A cancel has a task in hand that is through its lane, the limit is lowered below it, and the cancel
 * is rolled back: the task is ready again, holding a slot that the number does not allow.
 */
export const lateRollback = (shape: Shape, to: number, cancelled: number) =>
  schedule({ waited: false, above: 0, order: [1, 2, 3], peak: 1 }, async (scene) => {
    const [a, user, b] = await scene.sessions(3);
    const { worker } = await stage(a, shape, 3);
    await a.admit();
    await user.begin();
    await user.cancel([cancelled]);
    const set = b.setLimit("mail", { perKey: to });
    const waited = await scene.blocked(set);
    await set;
    const held = await a.claim(worker, 5);
    await b.keep();
    await user.rollback();
    held.push(...(await a.claim(worker, 5)));
    const above = Math.max(0, held.length - to);
    if (to === 0) await b.setLimit("mail", { perKey: 1 });
    const order = idsOf(held);
    let peak = held.length;
    for (let i = 0; i < 8; i++) {
      await b.keep();
      const more = await a.step(worker, 5, held.splice(0));
      held.push(...more.held);
      order.push(...idsOf(held));
      peak = Math.max(peak, (await scene.running()).length);
    }
    return { waited, above, order, peak };
  });

/** A task that was through its lane comes back after the limit was lowered: handed back, or reaped. */
export const backAboveTheNumber = (how: "release" | "reap") =>
  schedule({ claimed: [] as number[], claimedAfter: [2] }, async (scene) => {
    const [a] = await scene.sessions(1);
    const { worker, stream } = await stage(a, { perKey: 2 }, 3);
    const other = await a.register([stream], 100, 600_000);
    const [one] = await a.claim(other, 1);
    const [two] = await a.claim(worker, 1);
    await a.setLimit("mail", { perKey: 1 });
    if (how === "release") await a.settle(worker, "release", [two!]);
    else {
      await scene.moveClock(120_000);
      await a.reap();
    }
    const claimed = await a.claim(other, 5);
    const after = await a.step(other, 5, [one!]);
    return { claimed: idsOf(claimed), claimedAfter: idsOf(after.held) };
  });

/** Attack 12: a type with a backlog and with running tasks gets a limit of its own. */
export const concurrencyAdded = (concurrency: number) =>
  schedule(
    {
      claimed: Math.max(0, concurrency - 3),
      later: concurrency === 2 ? [0, 1] : [1],
      most: Math.max(3, concurrency),
    },
    async (scene) => {
      const [a] = await scene.sessions(1);
      const stream = await a.type("t");
      const worker = await a.register([stream]);
      await a.enqueue(stream, { n: 12 });
      const held = await a.claim(worker, 3);
      await a.type("t", { concurrency });
      const more = await a.claim(worker, 9);
      const most = (await scene.running()).length;
      held.push(...more);
      const later: number[] = [];
      while (later.at(-1) !== 1 && later.length < 5) later.push((await a.step(worker, 9, [held.shift()!])).held.length);
      return { claimed: more.length, later, most };
    },
  );

/** Attack 12: the same while a user's transaction has completed one of them and then rolls back. */
export const concurrencyAddedBesideCompletion = schedule({ claimed: 0, running: 2 }, async (scene) => {
  const [a, user, b] = await scene.sessions(3);
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await a.enqueue(stream, { n: 9 });
  const [one] = await a.claim(worker, 2);
  await user.begin();
  await user.settleInTransaction(worker, one!);
  const declared = b.type("t", { concurrency: 2 });
  await scene.blocked(declared);
  await user.rollback();
  await declared;
  const claimed = await a.claim(worker, 9);
  return { claimed: claimed.length, running: (await scene.running()).length };
});

/** Attack 12: a missing counter limits nothing, and must not block its tasks forever. */
export const missingGate = schedule({ shared: [1, 2], own: [3, 4] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const { worker } = await stage(a, { total: 2 }, 2);
  const stream = await a.type("own", { concurrency: 1 });
  const other = await a.register([stream]);
  await a.enqueue(stream, { n: 2 });
  await a.rows("delete from sluice.gate");
  const shared = idsOf(await a.claim(worker, 5));
  return { shared, own: idsOf(await a.claim(other, 5)) };
});

/** Two claims of one gate at once: the second has read the count before the first changed it. */
export const twoClaimsOfOneGate = schedule({ waited: true, claimed: [] as number[], running: 2 }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const { worker } = await stage(a, { total: 2 }, 9);
  await a.begin();
  await a.claim(worker, 2);
  const second = b.claim(worker, 5);
  const waited = await scene.blocked(second);
  await a.commit();
  return { waited, claimed: idsOf(await second), running: (await scene.running()).length };
});

/** A step that settles tasks does not wait for a counter that another session has locked. */
export const busyCounter = schedule({ waited: false, claimed: 1, running: 2, claimedAfter: 0 }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const { worker } = await stage(a, { total: 2 }, 9);
  const held = await a.claim(worker, 1);
  await b.begin();
  await b.claim(worker, 1);
  const step = a.step(worker, 5, held);
  const waited = await scene.blocked(step);
  await b.commit();
  const claimed = (await step).held.length;
  const running = (await scene.running()).length;
  return { waited, claimed, running, claimedAfter: (await a.claim(worker, 5)).length };
});

/** A limit is raised while tasks stand at it: they are woken, exactly as many as it allows now. */
export const raisedWithWaiters = (part: Part) =>
  schedule({ before: 1, after: 3, running: 4 }, async (scene) => {
    const [a] = await scene.sessions(1);
    const { worker } = await stage(a, { [part]: 1 }, 9);
    const before = (await a.claim(worker, 9)).length;
    await a.setLimit("mail", { [part]: 4 });
    const after = (await a.claim(worker, 9)).length;
    return { before, after, running: (await scene.running()).length };
  });

/**
 * A step frees a slot of one gate and finds a task of two others, whose ids add up to the first's: it
 * must not take the slot for one of theirs.
 */
export const gatesThatAddUp = schedule({ gates: [1, 2, 3], claimed: 1, claimedAfter: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const mail = await a.limit("mail", { total: 1 });
  const both = await a.type("both", { limits: [mail], concurrency: 1 });
  const own = await a.value<number>("select gate from sluice.stream");
  const third = await a.limit("third", { total: 5 });
  const other = await a.type("other", { limits: [third] });
  const worker = await a.register([both, other]);
  await a.enqueue(other, { limits: [third] });
  const held = await a.claim(worker, 1);
  await a.enqueue(both, { n: 3, limits: [mail] });
  const { held: more } = await a.step(worker, 1, held);
  const after = await a.claim(worker, 1);
  return { gates: [mail, own, third], claimed: more.length, claimedAfter: after.length };
});
