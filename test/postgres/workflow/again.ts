import { refusal, type Scene, type Session } from "../../support/sql.js";
import { schedule } from "../schedules/schedule.js";
import { map, sleep } from "./maps.js";
import { Play, ref, type InHand, type Nodes } from "./play.js";

// Schedules of retries that take more than one piece, and of retries beside a cancel.

const types = { a: {}, b: {}, item: {}, parent: {} };
const MANY = 2_500;
const PIECE = 1_000;

export const fan = (n: number, onError: "finish" | "failFast", window = MANY): Nodes => ({
  each: [
    "each",
    {
      type: "item",
      items: Array.from({ length: n }, (_, i) => i),
      input: ref("item"),
      window,
      onError,
    },
  ],
});

export const retry = (play: Play, run: number): Promise<number> =>
  play.db.value("select sluice.workflow_retry($1)", [run]);
export const further = (play: Play, run: number, max = PIECE): Promise<string> =>
  play.db.value("select sluice.workflow_continue($1, $2)", [run, max]);

/** Settles all tasks in flight with one outcome. */
export async function settleAll(
  play: Play,
  how: "fail" | "cancel" | "succeed",
  tasks: readonly InHand[] = play.hand,
): Promise<void> {
  if (how === "succeed")
    await play.step(
      0,
      tasks.map((t) => [t, t.input]),
    );
  else await play.db.settle(play.worker, how, tasks);
  const gone = new Set(tasks);
  play.hand = play.hand.filter((t) => !gone.has(t));
}

/** How many tasks of the run are not over. */
export const live = (play: Play, run: number): Promise<number> =>
  play.db.value(
    "select count(*)::int from sluice.workflow_task w where w.run = $1 and not exists (select from sluice.done d where d.id = w.id)",
    [run],
  );

export const ends = async (play: Play, run: number, node = "each"): Promise<number[]> => {
  const { succeeded, failed, cancelled } = await play.counts(run, node);
  return [succeeded!, failed!, cancelled!];
};

/**
 * A fan-out of 2,500 that is over: the first thousand were cancelled and the last three failed. What is between
 * succeeded.
 */
export async function halfDone(play: Play): Promise<number> {
  const run = await play.run(fan(MANY, "finish"));
  await play.keeper();
  while (play.hand.length < MANY) await play.claim(PIECE);
  const tasks = play.hand;
  await settleAll(play, "cancel", tasks.slice(0, PIECE));
  await settleAll(play, "succeed", tasks.slice(PIECE, -3));
  await settleAll(play, "fail", tasks.slice(-3));
  return run;
}

/** A run is cancelled while a retry has not brought back all items. */
export const cancelledBeforeAllAreBack = schedule(
  { back: PIECE, ends: [1_497, 3, 1_000], state: "cancelled" },
  async (scene) => {
    const play = await Play.on(scene, types);
    const run = await halfDone(play);
    await retry(play, run);
    const back = await live(play, run);
    await play.db.value("select sluice.workflow_cancel($1)", [run]);
    await play.drain();
    return { back, ends: await ends(play, run), state: await play.state(run) };
  },
);

/** A failFast fan-out fails again while a retry has not brought back all items. */
export const failedBeforeAllAreBack = schedule(
  { first: [0, 1, 2_499], ends: [0, 1, 2_499], state: "failed" },
  async (scene) => {
    const play = await Play.on(scene, types);
    const run = await play.run(fan(MANY, "failFast", 1));
    await play.keeper();
    const once = async (): Promise<number[]> => {
      await play.claim();
      await settleAll(play, "fail");
      await play.drain();
      return ends(play, run);
    };
    const first = await once();
    await retry(play, run);
    return { first, ends: await once(), state: await play.state(run) };
  },
);

/** One of the tasks that a retry of the run has not brought back yet is retried alone. */
export const retriedTwice = schedule(
  { answers: [true, false], started: 1_003, ends: [2_500, 0, 0], state: "succeeded" },
  async (scene) => {
    const play = await Play.on(scene, types);
    const run = await halfDone(play);
    const members = await play.members(run);
    const before = play.started.length;
    await retry(play, run);
    const one = (item: number): Promise<boolean> => play.db.value("select sluice.retry($1)", [members[item]!.id]);
    const answers = [await one(2_498), await one(1_500)];
    for (let i = 0; i < 10; i++) {
      await play.claim(PIECE);
      if (play.hand.length > 0) await settleAll(play, "succeed");
      await play.keeper();
    }
    const started = play.started.length - before;
    return { answers, started, ends: await ends(play, run), state: await play.state(run) };
  },
);

/** The run of a failed handler, its map, and one running item of the map. */
async function failedParent(play: Play): Promise<{ run: number; made: number; item: InHand }> {
  const run = await play.run({ one: ["task", { type: "parent" }] });
  const [parent] = await play.claim();
  const { run: made } = await map(play, parent!, "pages", 3, { window: 1 });
  const [item] = await play.claim();
  await play.settle(parent!, { fail: "x" });
  return { run, made: Number(made), item: item! };
}

/** The run of a handler is retried while what the handler had mapped is being cancelled. */
export const retriedWhileItsMapStops = schedule(
  { meanwhile: [1, 0], map: ["cancelling", "running"], back: ["parent", "item"] },
  async (scene) => {
    const play = await Play.on(scene, types);
    const { run, made, item } = await failedParent(play);
    await play.keeper();
    const before = await play.state(made);
    const nodes = await retry(play, run);
    await play.keeper();
    const claimed = await play.claim();
    await play.settle(item, "cancel");
    await play.keeper();
    await play.keeper();
    const back = (await play.claim()).map((t) => t.type);
    return { meanwhile: [nodes, claimed.length], map: [before, await play.state(made)], back };
  },
);

/** The run of a handler is retried while another holds what the handler had mapped. */
export const retriedBesideHolder = schedule({ waited: false, meanwhile: 0, back: ["parent"] }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a, b] = await scene.sessions(2);
  const { run, made, item } = await failedParent(play);
  await play.settle(item, { result: 1 });
  await play.keeper();
  await a.begin();
  await a.rows("select from sluice.workflow_run where id = $1 for update", [made]);
  const again = b.value("select sluice.workflow_retry($1)", [run]);
  const waited = await scene.blocked(again);
  if (waited) await a.commit();
  await again;
  const meanwhile = (await play.claim()).length;
  if (!waited) await a.commit();
  await play.db.rows("select sluice.workflow_keep(1000)");
  return { waited, meanwhile, back: (await play.claim()).map((t) => t.type) };
});

/** A handler's task is retried while another is about to cancel what it had mapped. */
export const retriedBesideOrphan = schedule({ map: ["running", "running"], task: "ready" }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a, b] = await scene.sessions(2);
  await play.db.enqueue(play.streamOf("parent"));
  const [parent] = await play.claim();
  const made = Number((await map(play, parent!, "pages", 3)).run);
  await play.settle(parent!, { fail: "x" });
  await a.begin();
  await a.value("select sluice.retry($1)", [parent!.id]);
  const orphans = b.value("select sluice.workflow_orphans(100)");
  await scene.blocked(orphans);
  await a.commit();
  await orphans;
  const meanwhile = await play.state(made);
  await play.keeper();
  return {
    map: [meanwhile, await play.state(made)],
    task: (await scene.state(parent!.id)) ?? "gone",
  };
});

/** As `handedBackWhileAsked`, of more items than are cancelled at once. */
export const handedBackOfMany = schedule({ ends: [0, 1, 2_499], state: "failed" }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a, b] = await scene.sessions(2);
  const run = await play.run(fan(MANY, "failFast", 2));
  await play.keeper();
  const [one, two] = await play.claim();
  await b.begin();
  await b.settle(play.worker, "retry", [two!]);
  const fail = a.settle(play.worker, "fail", [one!]);
  await scene.blocked(fail);
  await b.commit();
  await fail;
  play.hand = [];
  await play.db.rows("select sluice.workflow_keep(1000)");
  await play.drain();
  return { ends: await ends(play, run), state: await play.state(run) };
});

/** The last that stand at a shut window are cancelled. */
export const windowIsLeft = schedule({ lanes: 0 }, async (scene) => {
  const play = await Play.on(scene, types);
  await play.run(fan(MANY, "failFast", 2));
  await play.keeper();
  await play.claim();
  await settleAll(play, "fail");
  await play.drain();
  return { lanes: await play.db.value<number>("select count(*)::int from sluice.lane") };
});

/** A run of which a part is pruned is retried. */
export const retriedWhilePruned = schedule(
  { status: 0, answers: ["run_not_found", "unknown"] as unknown[], left: 0 },
  async (scene) => {
    const play = await Play.on(scene, types);
    const run = await play.run(fan(5, "finish"));
    await play.claim();
    await settleAll(play, "fail");
    await scene.moveClock(10_000);
    const prune = (max: number): Promise<number> =>
      play.db.value("select pruned from sluice.workflow_prune(0, 0, 0, $1)", [max]);
    await prune(2);
    const status = await play.db.value<number>(
      "select (select count(*)::int from sluice.workflow_status) + (select count(*)::int from sluice.workflow_progress)",
    );
    const answers: unknown[] = [await refusal(retry(play, run))];
    answers.push(await play.db.value("select sluice.workflow_cancel($1)", [run]));
    await prune(100);
    const left = await play.db.value<number>("select count(*)::int from sluice.workflow_run");
    return { status, answers, left };
  },
);

/** A run is retried while it is paused, and after it ended while it was paused. */
export const retriedWhilePaused = schedule(
  { answers: ["workflow_paused", "workflow_paused"], after: [2, "running"] as unknown[] },
  async (scene) => {
    const play = await Play.on(scene, types);
    const run = await play.run({ ...fan(2, "finish"), other: ["task", { type: "a" }] });
    const [one, two, other] = await play.claim();
    await play.settle(one!, { fail: "x" });
    await play.db.value("select sluice.workflow_pause($1, true)", [run]);
    await play.settle(other!, { fail: "x" });
    const answers = [await refusal(retry(play, run))];
    answers.push(await refusal(play.db.value("select sluice.retry($1)", [one!.id])));
    await play.db.value("select sluice.workflow_cancel($1)", [run]);
    await play.settle(two!, { result: 1 });
    const ended = await play.state(run);
    if (ended !== "cancelled") throw new Error(`it is ${ended}`);
    return { answers, after: [await retry(play, run), await play.state(run)] };
  },
);

/** What is asked of a run that failed, or of its task. */
type Ask = (operator: Session, run: number, task: number) => Promise<unknown>;

/** One session locks a run's row, another calls a verb of the run, and a third needs the barrier alone. */
export async function besideHeldRun(scene: Scene, ask: Ask): Promise<{ changed: string; answer: string }> {
  const play = await Play.on(scene, types);
  const [holder, operator, limiter] = await scene.sessions(3);
  const run = await play.run(fan(2, "finish"));
  const [one] = await play.claim();
  await play.settle(one!, { fail: "x" });
  await holder.begin();
  await holder.rows("select from sluice.workflow_run where id = $1 for update", [run]);
  const asks = ask(operator, run, one!.id);
  const answers = refusal(asks);
  if (!(await scene.blocked(asks))) throw new Error("it did not wait for the run");
  await limiter.script("begin; set local lock_timeout = '4s'");
  const changed = await refusal(limiter.rows("select pg_advisory_xact_lock('sluice.limits'::regclass::oid::int, 0)"));
  await limiter.rollback();
  await holder.rollback();
  return { changed, answer: await answers };
}

/** A limit is changed while a retry waits for its run. */
export const limitBesideHeldRun = schedule({ changed: "accepted", answer: "accepted" }, (scene) =>
  besideHeldRun(scene, (db, run) => db.value("select sluice.workflow_retry($1)", [run])),
);

/** A fan-out with a changed window starts again after a retry, because a node before it failed too. */
export const windowOutlivesRetry = schedule({ window: 3, started: 3 }, async (scene) => {
  const play = await Play.on(scene, types);
  const nodes: Nodes = { one: ["task", { type: "a" }], ...fan(5, "finish", 1) };
  nodes["each"]![1] = { ...nodes["each"]![1], after: [{ node: "one", on: "end" }] };
  const run = await play.run(nodes);
  await play.drain((t) => (t.type === "a" ? { fail: "x" } : "keep"));
  await play.db.value("select sluice.workflow_window($1, 'each', 3)", [run]);
  await play.drain((t) => (t.type === "a" ? "keep" : { fail: "x" }));
  await retry(play, run);
  const [one] = await play.claim();
  await play.settle(one!, { result: 1 });
  const started = (await play.claim()).length;
  const window = await play.db.value<number>(
    "select window_size from sluice.workflow_progress where run = $1 and name = 'each'",
    [run],
  );
  return { window, started };
});

/** Tasks of two fan-outs come back, of which the older has the higher lane; another holds the lower. */
export const severalBesideLane = schedule(
  { waited: true, higherIsFree: true, violations: [] as string[] },
  async (scene) => {
    const play = await Play.on(scene, types);
    const [holder, keeper, other] = await scene.sessions(3);
    const items = { type: "parent", items: [1, 2], onError: "finish" } as const;
    const run = await play.run({ all: ["each", items] });
    for (const [n, parent] of (await play.claim()).entries()) {
      await play.db.rows("select setval('sluice.workflow_lane', $1)", [200 - 100 * n]);
      await sleep(play, parent, (await map(play, parent, "m", 1)).run);
    }
    await play.drain(() => ({ fail: "x" }));
    await retry(play, run);
    // Their rows are still there, as when the last slot was given back in a user's transaction.
    const lanes = await play.db.rows<{ lane: string }>(
      `insert into sluice.lane (id, limit_id, cap, used) select lane, -2, 0, 0 from sluice.workflow_node
        where lane is not null order by lane returning id as lane`,
    );
    const lock = "select from sluice.lane where id = $1 for update skip locked";
    await holder.begin();
    await holder.rows(lock, [lanes[0]!.lane]);
    const keeps = keeper.rows("select from sluice.workflow_keep(1000)");
    const waited = await scene.blocked(keeps);
    const higherIsFree = (await other.rows(lock, [lanes[1]!.lane])).length === 1;
    await holder.rollback();
    await keeps;
    await play.drain();
    return { waited, higherIsFree, violations: await play.violations() };
  },
);

/** A retry of a run whose reply was lost is asked for again, and once more when the run is paused. */
export const runRetriedTwice = schedule({ answers: [1, 1, 1], other: "workflow_paused" }, async (scene) => {
  const play = await Play.on(scene, { a: {} });
  const run = await play.run({ one: ["task", { type: "a" }] });
  const [task] = await play.claim();
  await settleAll(play, "fail", [task!]);
  const retry = (token: number): Promise<number> => play.db.value("select sluice.workflow_retry($1, $2)", [run, token]);
  const answers = [await retry(7), await retry(7)];
  await play.db.value("select sluice.workflow_pause($1, true)", [run]);
  const last = retry(7);
  if ((await refusal(last)) === "accepted") answers.push(await last);
  return { answers, other: await refusal(retry(8)) };
});

/** A retry of a task is asked for again while the first call, whose reply was lost, is under way. */
export const taskRetriedTwice = schedule({ first: true, second: true, third: true, other: false }, async (scene) => {
  const play = await Play.on(scene, { a: {} });
  const [a, b] = await scene.sessions(2);
  await play.db.enqueue(play.streamOf("a"));
  const [task] = await play.claim();
  await settleAll(play, "fail", [task!]);
  const retry = (db: Session, token: number): Promise<boolean> =>
    db.value("select sluice.retry($1, $2)", [task!.id, token]);
  await a.begin();
  const first = await retry(a, 7);
  const waits = retry(b, 7);
  await scene.blocked(waits);
  await a.commit();
  return { first, second: await waits, third: await retry(b, 7), other: await retry(b, 8) };
});
