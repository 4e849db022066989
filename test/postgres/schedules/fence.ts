import { idsOf, refusal, type Held } from "../../support/sql.js";
import { schedule } from "./schedule.js";

/**
 * Attack 2: an old and a new claim of one task in one batch, in both orders, and the old one alone.
 * Different statements settle few and many tasks: strangers, which are not claimed, make it many.
 */
export const sameIdTwice = (strangers: number) =>
  schedule(
    {
      oldAlone: 1,
      oldWithResult: 1,
      settledOfBoth: 1,
      outcome: "new",
      oldFailAlone: [] as number[],
      failedOfBoth: [2],
      places: 1,
    },
    async (scene) => {
      const [a] = await scene.sessions(1);
      const stream = await a.type("t");
      const worker = await a.register([stream]);
      await a.enqueue(stream, { n: 2 });
      const old = await a.claim(worker, 2);
      await a.settle(worker, "release", old);
      const now = await a.claim(worker, 2);
      const others = Array.from({ length: strangers }, (_, i) => ({ id: 1_000 + i, token: "1" }));
      const { refused } = await a.step(worker, 0, [old[0]!, ...others]);
      const refusedWith = async (held: readonly Pick<Held, "id" | "token">[], results: string) => {
        const text = "select (report ->> 'refused')::int from sluice.step($1, 1, $2, 0, $3, $4, $5)";
        const settled = [held.map((h) => h.id), held.map((h) => h.token), results];
        return (await a.value<number | undefined>(text, [worker.id, [stream], ...settled])) ?? 0;
      };
      const none = "\u001e".repeat(strangers);
      const oldWithResult = await refusedWith([old[0]!, ...others], `"old"${none}`);
      const both = [now[0]!, old[0]!, ...others];
      const refusedOfBoth = await refusedWith(both, `"new"\u001e"old"${none}`);
      const outcome = await a.value<string>("select outcome #>> '{}' from sluice.done where id = 1");
      const oldFailAlone = await a.settle(worker, "retry", [old[1]!], 1_000);
      const failedOfBoth = await a.settle(worker, "retry", [old[1]!, now[1]!], 1_000);
      const places = await a.value<number>("select count(*)::int from sluice.scheduled where id = 2");
      const settledOfBoth = 2 + strangers - refusedOfBoth;
      return {
        oldAlone: refused - strangers,
        oldWithResult: oldWithResult - strangers,
        settledOfBoth,
        outcome,
        oldFailAlone,
        failedOfBoth,
        places,
      };
    },
  );

/**
 * Attack 3: under REPEATABLE READ a completion does not see tasks that joined the lane since its
 * transaction began, so the slot would go to none of them.
 */
export const otherIsolation = (level: string) =>
  schedule({ answer: "isolation_level", claimedAfter: [2] }, async (scene) => {
    const [a, b] = await scene.sessions(2);
    const limits = [await a.limit("tenant", { perKey: 1 })];
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { limits, keys: ["x"] });
    const first = await a.claim(worker, 1);
    await b.begin(level);
    await b.rows("select from sluice.waiting");
    await a.enqueue(stream, { limits, keys: ["x"] });
    await a.claim(worker, 1);
    const answer = await refusal(b.step(worker, 0, first));
    await (answer === "accepted" ? b.commit() : b.rollback());
    const { held } = await a.step(worker, 1, first);
    return { answer, claimedAfter: idsOf(held) };
  });

/** Attack 3: everything that admits, claims or changes a number asks for READ COMMITTED. */
export const isolationOfEach = schedule(
  {
    step: "isolation_level",
    settle: "isolation_level",
    admit: "isolation_level",
    set: "isolation_level",
    pause: "isolation_level",
  },
  async (scene) => {
    const [a] = await scene.sessions(1);
    await a.limit("tenant", { perKey: 1 });
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    const under = async (work: () => Promise<unknown>): Promise<string> => {
      await a.begin("serializable");
      const answer = await refusal(work());
      await a.rollback();
      return answer;
    };
    return {
      step: await under(() => a.claim(worker, 1)),
      settle: await under(() => a.settle(worker, "fail", [{ id: 1, token: "1" }])),
      admit: await under(() => a.admit()),
      set: await under(() => a.setLimit("tenant", { perKey: 2 })),
      pause: await under(() => a.value("select sluice.pause_queue('default', true)")),
    };
  },
);

/** Attack 5: the reply to a claim is lost while its worker keeps its heartbeat. */
export const replyIsLost = schedule(
  { released: 1, early: 0, late: 1, again: [2, 3], attempts: [1, 1], known: "running" },
  async (scene) => {
    const [a, cutOff] = await scene.sessions(2);
    const limits = [await a.limit("tenant", { perKey: 3 })];
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { n: 3, limits, keys: ["x"] });
    const [known] = await a.claim(worker, 1);
    await a.claim(worker, 1);
    await cutOff.begin();
    await cutOff.claim(worker, 1);
    const released = await a.releaseUnknown(worker, [known!.token]);
    const early = await a.releaseUnknown(worker, [known!.token]);
    // A claim that was cut off may still commit.
    await cutOff.commit();
    const late = await a.releaseUnknown(worker, [known!.token]);
    const other = await a.register([stream]);
    const again = await a.claim(other, 5);
    return {
      released,
      early,
      late,
      again: idsOf(again),
      attempts: again.map((h) => h.attempt),
      known: (await scene.state(1)) ?? "nowhere",
    };
  },
);

/** A worker whose lease has run out says that it lives, while a settle of it is not committed. */
export const survivedBesideSettle = schedule({ waits: false, left: true, after: [] as string[] }, async (scene) => {
  const [a, settling] = await scene.sessions(2);
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await a.enqueue(stream, { n: 2 });
  const [one] = await a.claim(worker, 2);
  await settling.begin();
  await settling.step(worker, 0, [one!]);
  await a.rows("update sluice.worker set expires_at = '-infinity'");
  const survived = "select sluice.survived(array[$1::bigint])::text[]";
  const told = a.value<string[]>(survived, [worker.id]);
  const waits = await scene.blocked(told);
  await settling.commit();
  return { waits, left: (await told)[0] === worker.id, after: await a.value<string[]>(survived, [worker.id]) };
});

/** Attack 9: a completion in a user's transaction that stays open, beside the others of its lanes. */
export const completionStaysOpen = schedule(
  { blocked: [] as string[], claimed: [3], claimedAfter: [4], total: 2 },
  async (scene) => {
    const [user, a, b] = await scene.sessions(3);
    const limits = [await a.limit("tenant", { perKey: 2, total: 2 })];
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { n: 5, limits, keys: ["x"] });
    const [one, two] = await a.claim(worker, 5);
    await user.begin();
    await user.settleInTransaction(worker, one!);
    const blocked: string[] = [];
    const step = a.step(worker, 5, [two!]);
    if (await scene.blocked(step)) blocked.push("step");
    const cancel = b.cancel([5]);
    if (await scene.blocked(cancel)) blocked.push("cancel");
    if (blocked.length > 0) await user.commit();
    else {
      const set = b.setLimit("tenant", { perKey: 2 });
      if (await scene.blocked(set)) blocked.push("set");
      await set;
      await user.commit();
    }
    await cancel;
    const claimed = idsOf((await step).held);
    const claimedAfter = idsOf(await a.claim(worker, 5));
    return { blocked, claimed, claimedAfter, total: (await scene.running()).length };
  },
);

/** Attack 10: a worker without a lease can do nothing. */
export const noLease = schedule(
  {
    unregistered: "lease_lost",
    claim: "lease_lost",
    complete: "lease_lost",
    fail: "lease_lost",
    inTransaction: "lease_lost",
    suspect: "lease_lost",
    beat: false,
    running: [1],
  },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const stream = await a.type("t");
    const worker = await a.register([stream], 100, 1_000);
    await a.enqueue(stream, { n: 2 });
    const [one] = await a.claim(worker, 1);
    const nobody = { id: "77", streams: [stream] };
    const unregistered = await refusal(a.claim(nobody, 1));
    await scene.moveClock(1_500);
    return {
      unregistered,
      claim: await refusal(a.claim(worker, 1)),
      complete: await refusal(a.step(worker, 0, [one!])),
      fail: await refusal(a.settle(worker, "fail", [one!])),
      inTransaction: await refusal(a.settleInTransaction(worker, one!)),
      suspect: await refusal(a.rows("select from sluice.claim_suspect($1, 1, 2)", [worker.id])),
      beat: await a.beat(worker, 1),
      running: await scene.running(),
    };
  },
);

/** The database's clock goes back by minutes, and one of two workers is dead. */
export const clockSetBack = schedule({ alive: true, reaped: [0, 0, 1], claimed: [1], completed: 1 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const stream = await a.type("t");
  await scene.moveClock(600_000);
  const dead = await a.register([stream], 100, 10_000);
  const worker = await a.register([stream], 100, 10_000);
  await a.enqueue(stream);
  await a.claim(dead, 1);
  const reaped = [await a.reap()];
  await scene.moveClock(0);
  const alive = await a.beat(worker, 1);
  reaped.push(await a.reap());
  // A lease later, in which the live worker has sent a heartbeat.
  await scene.moveClock(9_000);
  await a.beat(worker, 1);
  await scene.moveClock(11_000);
  reaped.push(await a.reap());
  const held = await a.claim(worker, 5);
  const { refused } = await a.step(worker, 0, held);
  return { alive, reaped, claimed: idsOf(held), completed: held.length - refused };
});

/** The clock goes forward by minutes: leases look expired, tasks run again, and one outcome is accepted. */
export const clockSetForward = schedule(
  { beat: false, reaped: 1, claimed: [1], first: "lease_lost", second: 1, state: "succeeded" },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const stream = await a.type("t");
    const worker = await a.register([stream], 100, 10_000);
    await a.enqueue(stream);
    const held = await a.claim(worker, 1);
    await scene.moveClock(600_000);
    const beat = await a.beat(worker, 1);
    const reaped = await a.reap();
    const other = await a.register([stream], 100, 10_000);
    const again = await a.claim(other, 1);
    const first = await refusal(a.step(worker, 0, held));
    const { refused } = await a.step(other, 0, again);
    const state = await scene.state(1);
    return { beat, reaped, claimed: idsOf(again), first, second: again.length - refused, state };
  },
);

/** Attack 10: an attempt counter at the end of its type ends its task, not the claims of its queue. */
export const attemptsAtTheirEnd = schedule(
  { claimed: [1, 2], attempts: [32_000, 1], states: ["failed", "succeeded"] },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { attempts: 32_000 });
    await a.enqueue(stream);
    await a.rows("update sluice.ready set attempt = 31999 where id = 1");
    const held = await a.claim(worker, 5);
    await a.settle(worker, "retry", [held[0]!]);
    await a.step(worker, 5, [held[1]!]);
    await a.due();
    await a.claim(worker, 5);
    return {
      claimed: idsOf(held),
      attempts: held.map((h: Held) => h.attempt),
      states: [(await scene.state(1)) ?? "nowhere", (await scene.state(2)) ?? "nowhere"],
    };
  },
);

/** A completion in a user's transaction while a deploy gives its type a limit: the task stays its own. */
export const completionBesideNewLimit = schedule(
  { answer: "accepted", state: "succeeded", claimed: 2 },
  async (scene) => {
    const [a, user, b] = await scene.sessions(3);
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { n: 9 });
    const [one] = await a.claim(worker, 2);
    await b.begin();
    await b.type("t", { concurrency: 3 });
    await user.begin();
    const completion = user.settleInTransaction(worker, one!);
    await scene.blocked(completion);
    await b.commit();
    const answer = await refusal(completion);
    await user.commit();
    const claimed = (await a.claim(worker, 9)).length;
    return { answer, state: (await scene.state(1)) ?? "nowhere", claimed };
  },
);

/** A suspect whose type's own limit is also one of its limits. */
export const suspectOfOneGate = schedule({ claimed: 1, used: 0 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const stream = await a.type("t", { concurrency: 2 });
  const limits = [await a.value<number>("select id from sluice.limits")];
  await a.enqueue(stream, { limits });
  for (let crash = 0; crash < 3; crash++) {
    const dying = await a.register([stream]);
    await a.claim(dying, 1);
    await a.rows("delete from sluice.worker");
    await a.reap();
  }
  const worker = await a.register([stream]);
  await a.beat(worker, 1);
  const rows = await a.rows<{ id: string }>("select id from sluice.claim_suspect($1, 5, 1)", [worker.id]);
  await a.step(worker, 0, [{ id: 1, token: "5" }]);
  const used = await a.value<number>(
    "select used - coalesce((select sum(n) from sluice.credit), 0)::int from sluice.gate",
  );
  return { claimed: rows.length, used };
});

/** A worker that has lost its task reports progress of it after the next one has. */
export const progressOfALostClaim = schedule({ fraction: 0.75 }, async (scene) => {
  const [a] = await scene.sessions(1);
  const stream = await a.type("t");
  const worker = await a.register([stream]);
  await a.enqueue(stream);
  const old = await a.claim(worker, 1);
  await a.settle(worker, "release", old);
  const now = await a.claim(worker, 1);
  const report = "select sluice.report_progress(array[1::bigint], array[$1::bigint], array[$2::real], '')";
  await a.rows(report, [now[0]!.token, 0.75]);
  await a.rows(report, [old[0]!.token, 0.25]);
  return { fraction: await a.value<number>("select fraction::float8 from sluice.progress where id = 1") };
});
