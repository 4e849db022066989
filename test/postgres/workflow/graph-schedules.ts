import { refusal } from "../../support/sql.js";
import { schedule } from "../schedules/schedule.js";
import { Play, type Nodes } from "./play.js";

const only: Nodes = { one: ["task", { type: "a" }] };
const prune = "select sluice.workflow_prune_graphs(0, 9)";
const start = "select (ids)[1] from sluice.workflow_start($1, 'null')";

/** A graph that is not the newest is started by a transaction that is not committed when graphs are pruned. */
export const startBesidePrune = schedule({ pruned: 0, state: "succeeded" }, async (scene) => {
  const play = await Play.on(scene, { a: {} });
  const [old] = [await play.declare(only), await play.declare(only)];
  await scene.moveClock(1_000);
  const [user] = await scene.sessions(1);
  await user.begin();
  const run = await user.value<number>(start, [old]);
  const pruned = await play.db.value<number>(prune);
  await user.commit();
  play.worker = await play.db.register(play.worker.streams);
  await play.drain();
  return { pruned, state: await play.state(run) };
});

/** The same the other way round. */
export const pruneBesideStart = schedule({ pruned: 1, waited: true, answer: "unknown_workflow" }, async (scene) => {
  const play = await Play.on(scene, { a: {} });
  const [old] = [await play.declare(only), await play.declare(only)];
  await scene.moveClock(1_000);
  const [user, keeper] = await scene.sessions(2);
  await keeper.begin();
  const pruned = await keeper.value<number>(prune);
  const started = user.value(start, [old]);
  const waited = await scene.blocked(started);
  await keeper.commit();
  return { pruned, waited, answer: await refusal(started) };
});
