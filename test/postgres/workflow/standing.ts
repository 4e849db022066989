import { schedule } from "../schedules/schedule.js";
import { Play, ref, type Nodes } from "./play.js";

/** An event comes for a run that another has in hand, and one for a run that nobody has. */
export const noteOfHeldRun = schedule(
  { waited: false, states: ["running", "succeeded"], after: "succeeded" },
  async (scene) => {
    const play = await Play.on(scene, { item: {}, other: {} });
    const [holder, worker] = await scene.sessions(2);
    const [held, free] = [await play.run(waiting), await play.run(waiting)];
    await holder.begin();
    await holder.rows("select from sluice.workflow_run where id = $1 for update", [held]);
    for (const run of [held, free])
      await play.db.value("select sluice.workflow_send($1, 'go', '1')", [run]);
    const step = worker.step(play.worker, 1, []);
    const waited = await scene.blocked(step);
    await step.catch(() => {});
    const states = [await play.state(held), await play.state(free)];
    await holder.rollback();
    await play.drain();
    return { waited, states, after: await play.state(held) };
  },
);

const waiting: Nodes = { wait: ["waitFor", { event: "go" }] };
const RECORD = "\u001e";

/** A fan-out is paused while a placer has it in hand; when it is resumed its type needs no code any more. */
export const resumedInHand = schedule({ waited: false, state: "succeeded" }, async (scene) => {
  const play = await Play.on(scene, { coded: {} });
  await play.db.rows("update sluice.contract set limit_ids = null where type = 'coded'");
  const [placer, operator] = await scene.sessions(2);
  const run = await play.run({ all: ["each", { type: "coded", items: [1, 2, 3], window: 2 }] });
  const stream = play.streamOf("coded");
  await placer.begin();
  await placer.rows("select run from sluice.workflow_take($1)", [[stream]]);
  const inputs = ["1", "2", "3"].join(RECORD);
  await placer.value("select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 25, $3)", [
    run,
    stream,
    inputs,
  ]);
  await operator.value("select sluice.workflow_pause($1, true)", [run]);
  await play.db.rows("update sluice.contract set limit_ids = '{}' where type = 'coded'");
  const resume = operator.value("select sluice.workflow_pause($1, false)", [run]);
  const waited = await scene.blocked(resume);
  if (waited) {
    await placer.rollback();
  } else {
    await placer.value("select sluice.workflow_placed($1, 1::smallint)", [run]);
    await placer.commit();
  }
  await resume;
  await play.drain();
  return { waited, state: await play.state(run) };
});

/** A graph is deleted between the snapshot of a transaction and its start of a run. */
export const startOfOldSnapshot = schedule({ refused: "40001", runs: 0 }, async (scene) => {
  const play = await Play.on(scene, { item: {} });
  const [user] = await scene.sessions(1);
  const graph = await play.declare({ one: ["task", { type: "item" }] });
  await play.declare({ other: ["task", { type: "item" }] });
  await user.rows("begin isolation level repeatable read");
  await user.rows("select from sluice.setting");
  await play.db.value("select sluice.workflow_prune_graphs(0, 10)");
  const refused = await user
    .rows("select sluice.workflow_start($1, 'null')", [graph])
    .then(() => null)
    .catch((e: unknown) => (e as { code: string }).code);
  await user.rows("commit");
  const runs = await play.db.value("select count(*)::int from sluice.workflow_run");
  return { refused, runs };
});

const FANS = 8;

/** Lists of a thousand items each begin together. */
export const manyFans = schedule({ made: 5_000, items: 8_000 }, async (scene) => {
  const play = await Play.on(scene, { item: {} });
  const nodes: Nodes = { root: ["task", { type: "item" }] };
  const each = { type: "item", items: ref("root"), input: ref("item"), after: ["root"] };
  for (let i = 0; i < FANS; i++) nodes[`each ${i}`] = ["each", each];
  await play.run(nodes);
  const [root] = await play.claim();
  await play.settle(root!, { result: Array.from({ length: 1_000 }, (_, i) => i) });
  const made = await play.db.value<number>(ITEMS);
  await play.keeper();
  return { made, items: await play.db.value<number>(ITEMS) };
});

const ITEMS = "select count(*)::int from sluice.workflow_task where node > 1";
