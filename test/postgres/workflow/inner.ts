import type { Scene } from "../../support/sql.js";
import { schedule } from "../schedules/schedule.js";
import { follow, map, openMap, pauseAll, sayPlaced, sleep } from "./maps.js";
import { Play, type InHand, type Nodes } from "./play.js";

// Schedules of maps of a run's tasks, beside a pause or a cancel of that run.

export const types = { parent: {}, item: {} };
export const outer: Nodes = { one: ["task", { type: "parent" }] };

/** A run of one task, which is running. */
export async function runInHand(play: Play): Promise<{ run: number; task: InHand }> {
  const run = await play.run(outer);
  const [task] = await play.claim();
  return { run, task: task! };
}

/** A run whose task has fanned out and sleeps, an item of which has fanned out too and sleeps. */
export async function nested(play: Play, items = 3, window = 1) {
  const { run, task } = await runInHand(play);
  const first = await map(play, task, "first", items, { window });
  await sleep(play, task, first.run);
  const [item] = await play.claim(1);
  const second = await map(play, item!, "second", items, { window });
  await sleep(play, item!, second.run);
  return { run, first: first.run, second: second.run };
}

export const cancelMaps = (db: Play["db"], run: number | null, tasks: readonly number[] = []): Promise<boolean> =>
  db.value("select sluice.workflow_cancel_maps($1, $2, 1000)", [run, tasks]);

const pause = (db: Play["db"], run: number): Promise<boolean> =>
  db.value("select sluice.workflow_pause($1, true)", [run]);

/** A map of a run's task, in a transaction of its maker. */
async function mapInTheMaking(scene: Scene) {
  const play = await Play.on(scene, types);
  const [maker, operator] = await scene.sessions(2);
  const { run, task } = await runInHand(play);
  await maker.begin();
  const made = await openMap(play, maker, task, "m", 4);
  return { play, maker, operator, run, made };
}

/** A run is paused while one of its tasks is about to commit a map. */
export const pausedBesideMaker = schedule({ waited: true, map: "paused", started: 0 }, async (scene) => {
  const { play, maker, operator, run, made } = await mapInTheMaking(scene);
  await sayPlaced(maker, made.run);
  const pauses = pause(operator, run);
  const waited = await scene.blocked(pauses);
  // A session that does not wait checks before the map exists.
  if (!waited) await follow(operator, run);
  await maker.commit();
  await pauses;
  if (waited) await follow(operator, run);
  const map = await play.state(Number(made.run));
  return { waited, map, started: (await play.claim()).length };
});

/** A task of a run is about to commit a map while a pause of the run is not committed. */
export const madeBesidePause = schedule({ waited: true, map: "paused", started: 0 }, async (scene) => {
  const { play, maker, operator, run, made } = await mapInTheMaking(scene);
  await operator.begin();
  await pause(operator, run);
  const says = sayPlaced(maker, made.run);
  const waited = await scene.blocked(says);
  await operator.commit();
  await says;
  await follow(operator, run);
  await maker.commit();
  const map = await play.state(Number(made.run));
  return { waited, map, started: (await play.claim()).length };
});

/** A run of two tasks: while one is about to commit a map, the other ends, an event comes and a keeper looks. */
export const settledBesideMaker = schedule(
  { waited: false, nodes: { one: "running", two: "succeeded", wait: "succeeded" }, cancel: false },
  async (scene) => {
    const play = await Play.on(scene, { ...types, other: {} });
    const [maker, worker, operator] = await scene.sessions(3);
    const two: Nodes = {
      ...outer,
      two: ["task", { type: "other" }],
      wait: ["waitFor", { event: "go" }],
    };
    const run = await play.run(two);
    const tasks = await play.claim();
    const [parent, other] = ["parent", "other"].map((type) => tasks.find((t) => t.type === type)!);
    await maker.begin();
    const made = await openMap(play, maker, parent!, "m", 4);
    await sayPlaced(maker, made.run);
    await play.db.value("select sluice.workflow_send($1, 'go', '1')", [run]);
    const settles = worker.step(play.worker, 0, [other!]);
    const waited = await scene.blocked(settles);
    if (!waited) await settles;
    await play.db.value("select moved from sluice.workflow_keep(100)");
    const nodes = await play.nodes(run);
    const cancels = operator.value("select sluice.workflow_cancel($1)", [run]);
    const cancel = await scene.blocked(cancels);
    await maker.commit();
    await Promise.allSettled([settles, cancels]);
    return { waited, nodes, cancel };
  },
);

/** A run is cancelled whose only task sleeps, and so does an item of its map. */
export const cancelledWithMaps = schedule(
  { answer: "cancelled", maps: ["cancelled", "cancelled"], started: 0 },
  async (scene) => {
    const play = await Play.on(scene, types);
    const { run, first, second } = await nested(play);
    const answer = await play.db.value<string>("select sluice.workflow_cancel($1)", [run]);
    const maps = [await play.state(Number(first)), await play.state(Number(second))];
    return { answer, maps, started: (await play.claim()).length };
  },
);

/** The map of a paused run's task is in another's hand while the run is cancelled; then the run is retried. */
export const retriedWithPausedMap = schedule({ map: "succeeded", state: "succeeded" }, async (scene) => {
  const play = await Play.on(scene, types);
  const [holder] = await scene.sessions(1);
  const { run, task } = await runInHand(play);
  const made = await map(play, task, "m", 3, { window: 1 });
  await sleep(play, task, made.run);
  await pauseAll(play, run, true);
  await holder.begin();
  await holder.rows("select from sluice.workflow_run where id = $1 for update", [made.run]);
  await play.db.value("select sluice.workflow_cancel($1)", [run]);
  await holder.rollback();
  await play.db.value("select sluice.workflow_retry($1)", [run]);
  await follow(play.db, run);
  await play.drain();
  return { map: await play.state(Number(made.run)), state: await play.state(run) };
});

/** Both maps of a run's task are in another's hand while the run is cancelled, and the older one a while longer. */
export const cancelledBesideHolders = schedule(
  { meanwhile: "running", waited: true, newerIsFree: true, started: 0, map: "cancelled" },
  async (scene) => {
    const play = await Play.on(scene, types);
    const [older, newer, operator] = await scene.sessions(3);
    const { run, task } = await runInHand(play);
    const one = await map(play, task, "one", 3, { window: 1 });
    const two = await map(play, task, "two", 3, { window: 1 });
    await sleep(play, task, one.run, two.run);
    const lock = "select from sluice.workflow_run where id = $1 for update skip locked";
    await older.begin();
    await older.rows(lock, [one.run]);
    await newer.begin();
    await newer.rows(lock, [two.run]);
    await operator.value("select sluice.workflow_cancel($1)", [run]);
    const meanwhile = await play.state(Number(one.run));
    await newer.rollback();
    const cancels = cancelMaps(operator, run);
    const waited = await scene.blocked(cancels);
    const newerIsFree = (await newer.rows(lock, [two.run])).length === 1;
    await older.rollback();
    await cancels;
    const started = (await play.claim()).length;
    return { meanwhile, waited, newerIsFree, started, map: await play.state(Number(one.run)) };
  },
);

/** A task that sleeps is cancelled and retried before what it had made is cancelled. */
export const retriedBesideCancel = schedule({ waited: true, map: "running", task: "ready" }, async (scene) => {
  const play = await Play.on(scene, types);
  const [retrier, operator] = await scene.sessions(2);
  await play.db.enqueue(play.streamOf("parent"));
  const [task] = await play.claim();
  const made = await map(play, task!, "m", 3, { window: 1 });
  await sleep(play, task!, made.run);
  await play.db.cancel([task!.id]);
  await retrier.begin();
  await retrier.value("select sluice.retry($1)", [task!.id]);
  const cancels = cancelMaps(operator, null, [task!.id]);
  const waited = await scene.blocked(cancels);
  await retrier.commit();
  await cancels;
  return {
    waited,
    map: await play.state(Number(made.run)),
    task: (await scene.state(task!.id))!,
  };
});

/** A run is cancelled, retried, and cancelled again before a keeper has brought back what its task had fanned out. */
export const cancelledBeforeMapsAreBack = schedule(
  { back: "running", states: ["cancelled", "cancelled"] },
  async (scene) => {
    const play = await Play.on(scene, types);
    const { run, first } = await nested(play);
    const cancel = "select sluice.workflow_cancel($1)";
    await play.db.value(cancel, [run]);
    await play.db.value("select sluice.workflow_retry($1)", [run]);
    const back = await play.state(Number(first));
    await play.db.value(cancel, [run]);
    await play.drain();
    return { back, states: [await play.state(run), await play.state(Number(first))] };
  },
);
