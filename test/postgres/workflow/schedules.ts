import { refusal } from "../../support/sql.js";
import { schedule } from "../schedules/schedule.js";
import { Play, ref, type Nodes } from "./play.js";

const types = { a: {}, b: {}, item: {}, parent: {} };
const chain: Nodes = { one: ["task", { type: "a" }], two: ["task", { type: "b", after: ["one"] }] };
const fan = (n: number, onError: "finish" | "failFast" = "finish"): Nodes => ({
  each: [
    "each",
    {
      type: "item",
      items: Array.from({ length: n }, (_, i) => i),
      input: ref("item"),
      window: 2,
      onError,
    },
  ],
  after: ["task", { type: "b", after: [{ node: "each", on: "end" }] }],
});

/** Two workers settle the last two items of a fan-out at once. */
export const twoLastCompleters = schedule({ waited: true, advanced: 1, state: "succeeded" }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a, b] = await scene.sessions(2);
  const run = await play.run(fan(2));
  const [one, two] = await play.claim();
  await a.begin();
  await a.step(play.worker, 0, [one!]);
  const other = b.step(play.worker, 0, [two!]);
  const waited = await scene.blocked(other);
  await a.commit();
  await other;
  play.hand = [];
  await play.drain();
  const advanced = play.started.filter((t) => t.type === "b").length;
  return { waited, advanced, state: await play.state(run) };
});

/** A run is cancelled while the completion that would make its next node runnable is not committed. */
export const cancelBesideCompletion = schedule(
  { waited: true, answer: "cancelled", started: 0, state: "cancelled" },
  async (scene) => {
    const play = await Play.on(scene, types);
    const [a, b] = await scene.sessions(2);
    const run = await play.run(chain);
    const [one] = await play.claim();
    await a.begin();
    await a.step(play.worker, 0, [one!]);
    const cancel = b.value<string>("select sluice.workflow_cancel($1)", [run]);
    const waited = await scene.blocked(cancel);
    await a.commit();
    const answer = await cancel;
    play.hand = [];
    await play.drain();
    const started = play.started.filter((t) => t.type === "b").length;
    return { waited, answer, started, state: await play.state(run) };
  },
);

/** A running handler with a map of one running item, and the call that puts the handler to sleep. */
async function mapOfOne(play: Play) {
  await play.db.enqueue(play.streamOf("parent"));
  const [parent] = await play.claim();
  const run = await play.db.value<string>("select run from sluice.workflow_map($1, $2, $3, 'm', $4, 1, 1, 'finish')", [
    play.worker.id,
    parent!.id,
    parent!.token,
    play.streamOf("item"),
  ]);
  await play.db.rows("select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 25, '0')", [run, play.streamOf("item")]);
  await play.db.rows("select sluice.workflow_placed($1, 1::smallint)", [run]);
  const [child] = await play.claim();
  const asleep = (session: typeof play.db): Promise<unknown> =>
    session.value("select sluice.settle($1, $2, $3, '{wait}', '{0}', $4)::text", [
      play.worker.id,
      [parent!.id],
      [parent!.token],
      `[${run}]`,
    ]);
  return { parent: parent!, child: child!, asleep };
}

/** A handler goes to sleep while the end of its last child is not committed. */
export const sleepBesideLastChild = schedule({ waited: true, woke: true }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a, b] = await scene.sessions(2);
  const { parent, child, asleep } = await mapOfOne(play);
  await a.begin();
  await a.step(play.worker, 0, [child]);
  const sleep = asleep(b);
  const waited = await scene.blocked(sleep);
  await a.commit();
  await sleep;
  const [again] = await play.claim();
  return { waited, woke: again?.id === parent.id };
});

/** A cancel of a sleeping handler is open while its last child ends, and rolls back. */
export const cancelOfSleeperRollsBack = schedule({ woke: true }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a] = await scene.sessions(1);
  const { parent, child, asleep } = await mapOfOne(play);
  await asleep(play.db);
  await a.begin();
  await a.rows("select * from sluice.cancel(array[$1::bigint])", [parent.id]);
  await play.db.step(play.worker, 0, [child]);
  await a.rollback();
  await play.db.rows("select sluice.workflow_orphans(100)");
  const [again] = await play.claim();
  return { woke: again?.id === parent.id };
});

/** The run is cancelled after its tasks were placed and before that is said. */
export const cancelWhilePlaced = schedule({ placed: false, tasks: 0 }, async (scene) => {
  const play = await Play.on(scene, { ...types, coded: {} });
  const [placer] = await scene.sessions(1);
  await play.db.rows("update sluice.contract set limit_ids = null where type = 'coded'");
  const run = await play.run({ one: ["task", { type: "coded" }] });
  await placer.begin();
  const streams = [play.streamOf("coded")];
  await placer.rows("select * from sluice.workflow_take($1)", [streams]);
  const place = "select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 25, 'null')";
  await placer.rows(place, [run, streams[0]]);
  await play.db.value("select sluice.workflow_cancel($1)", [run]);
  const placed = await placer.value<boolean>("select sluice.workflow_placed($1, 1::smallint)", [run]);
  await (placed ? placer.commit() : placer.rollback());
  return { placed, tasks: (await play.members(run)).length };
});

/** History is off, and the next node is rendered from what the first came to. */
export const historyOff = schedule<{ got: unknown }>({ got: "from one" }, async (scene) => {
  const play = await Play.on(scene, types);
  play.keep = false;
  await play.run({
    one: ["task", { type: "a" }],
    pause: ["task", { type: "item", after: ["one"] }],
    two: ["task", { type: "b", after: ["pause"], input: ref("one") }],
  });
  await play.drain((t) => ({ result: t.type === "a" ? "from one" : null }));
  return { got: play.started.at(-1)!.input };
});

/** History is swept while a run still needs what its first node came to. */
export const sweptWhileItLives = schedule<{ got: unknown }>({ got: "from one" }, async (scene) => {
  const play = await Play.on(scene, types);
  await play.run({
    one: ["task", { type: "a" }],
    pause: ["task", { type: "item", after: ["one"] }],
    two: ["task", { type: "b", after: ["pause"], input: ref("one") }],
  });
  await play.settle((await play.claim())[0]!, { result: "from one" });
  await play.db.rows("delete from sluice.sweep");
  await play.db.rows("insert into sluice.sweep values (0, 0, '-infinity')");
  await play.db.rows("select sluice.prune_done(-1000, -1000, -1000)");
  await play.drain();
  return { got: play.started.at(-1)!.input };
});

/** A task of a run is completed in a user's transaction. */
export const completedInTransaction = schedule({ next: ["b"] }, async (scene) => {
  const play = await Play.on(scene, types);
  await play.run(chain);
  const [one] = await play.claim();
  await play.db.settleInTransaction(play.worker, one!);
  play.hand = [];
  await play.keeper();
  return { next: (await play.claim()).map((t) => t.type) };
});

/**
 * A failFast fan-out fails while one of its items is released for a retry: the failure sees the item running, and
 * the release does not see that it was asked to stop.
 */
export const handedBackWhileAsked = schedule({ counts: [0, 1, 1], state: "failed" }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a, b] = await scene.sessions(2);
  const run = await play.run(fan(2, "failFast"));
  const [one, two] = await play.claim();
  await b.begin();
  await b.settle(play.worker, "retry", [two!]);
  await a.begin();
  const fail = a.settle(play.worker, "fail", [one!]);
  await scene.blocked(fail);
  await b.commit();
  await fail;
  await b.due();
  await a.commit();
  play.hand = [];
  await play.drain();
  const { succeeded, failed, cancelled } = await play.counts(run, "each");
  return { counts: [succeeded!, failed!, cancelled!], state: await play.state(run) };
});

/** A run is retried while the branch that its failure started still runs. */
export const retriedBesideItsBranch = schedule({ answer: "workflow_running" }, async (scene) => {
  const play = await Play.on(scene, types);
  const run = await play.run({
    one: ["task", { type: "a" }],
    undo: ["task", { type: "b", after: [{ node: "one", on: "failure" }] }],
  });
  await play.settle((await play.claim())[0]!, { fail: "x" });
  const answer = await refusal(play.db.value("select sluice.workflow_retry($1)", [run]));
  await play.drain();
  return { answer };
});

/** The first of a fail-fast fan-out fails while another runs and others wait. */
export const firstFails = schedule({ started: 0 }, async (scene) => {
  const play = await Play.on(scene, types);
  await play.run(fan(3_000, "failFast"));
  await play.keeper();
  const [one] = await play.claim();
  await play.settle(one!, { fail: "x" });
  const before = play.started.length;
  await play.claim();
  return { started: play.started.length - before };
});

/** The first items of two failFast fan-outs fail in one settle. */
export const twoFail = schedule({ started: 0 }, async (scene) => {
  const play = await Play.on(scene, types);
  for (let i = 0; i < 2; i++) await play.run(fan(3_000, "failFast"));
  await play.keeper();
  const firsts = (await play.claim()).filter((t) => t.input === 0);
  await play.db.settle(play.worker, "fail", firsts);
  const before = play.started.length;
  await play.claim();
  return { started: play.started.length - before };
});

/** Items of two fan-outs are handed back, to be tried later, while one of the two fails by another item. */
export const failBesideHandBack = schedule({ waited: true, started: 0 }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a, b] = await scene.sessions(2);
  for (let i = 0; i < 2; i++) await play.run(fan(3_000, "failFast"));
  await play.keeper();
  const [failing, handed, ...others] = await play.claim();
  await a.begin();
  await a.settle(play.worker, "fail", [failing!]);
  const other = b.settle(play.worker, "retry", [handed!, others[0]!], 3_600_000);
  const waited = await scene.blocked(other);
  await a.commit();
  await other;
  // One of the second fan-out takes the place of the one that was handed back there.
  const started = (await play.claim()).length - 1;
  return { waited, started };
});

/** One completes inside a transaction; while its slot is given back another completes. */
export const twoFree = schedule({ waited: true, violations: [] }, async (scene) => {
  const play = await Play.on(scene, types);
  const [a, b] = await scene.sessions(2);
  await play.run(fan(2));
  const [one, two] = await play.claim();
  await a.settleInTransaction(play.worker, one!);
  await a.begin();
  await a.admit();
  const other = b.step(play.worker, 0, [two!]);
  const waited = await scene.blocked(other);
  await a.commit();
  await other;
  return { waited, violations: await scene.violations() };
});
