import { randomBytes } from "node:crypto";
import { pages } from "../../support/pages.js";
import { schedule } from "../schedules/schedule.js";
import { Play, ref, type Nodes } from "./play.js";

/** An event arrives for a run that another session has locked, and one for a run that is not locked. */
export const noteOfHeldRun = schedule(
  { waited: false, states: ["running", "succeeded"], after: "succeeded" },
  async (scene) => {
    const play = await Play.on(scene, { item: {}, other: {} });
    const [holder, worker] = await scene.sessions(2);
    const [held, free] = [await play.run(waiting), await play.run(waiting)];
    await holder.begin();
    await holder.rows("select from sluice.workflow_run where id = $1 for update", [held]);
    for (const run of [held, free]) await play.db.value("select sluice.workflow_send($1, 'go', '1')", [run]);
    const step = worker.step(play.worker, 1, []);
    const waited = await scene.blocked(step);
    await step.catch(() => {});
    const states = [await play.state(held), await play.state(free)];
    await holder.rollback();
    await play.drain();
    return { waited, states, after: await play.state(held) };
  },
);

/** A run with a hundred notes is in another's hand, and another run has a note behind them. */
export const notesOfHeldRun = schedule(
  { states: ["running", "succeeded", "running"], notes: 100, after: "succeeded" },
  async (scene) => {
    const play = await Play.on(scene, {});
    const [holder] = await scene.sessions(1);
    const [held, free, quiet] = [
      await play.run({ ...waiting, last: ["waitFor", { event: "last", after: ["wait"] }] }),
      await play.run(waiting),
      await play.run(waiting),
    ];
    await holder.begin();
    await holder.rows("select from sluice.workflow_run where id = $1 for update", [held]);
    const send = "select sluice.workflow_send($1, $2, '1')";
    await play.db.value(send, [held, "last"]);
    for (let i = 1; i < 100; i++) await play.db.value(send, [held, "go"]);
    await play.db.value(send, [free, "go"]);
    await play.step(0);
    const states = [await play.state(held), await play.state(free), await play.state(quiet)];
    const notes = await play.db.value<number>("select count(*)::int from sluice.workflow_note");
    await holder.rollback();
    await play.drain();
    return { states, notes, after: await play.state(held) };
  },
);

/** One call starts three runs, two of them under one idempotency key. */
export const keyTwiceInOneCall = schedule({ answer: '("{1,1,3}","{f,t,f}")', runs: 2, started: 2 }, async (scene) => {
  const play = await Play.on(scene, { item: {} });
  const graph = await play.declare({ one: ["task", { type: "item" }] });
  const answer = await play.db
    .value<string>("select sluice.workflow_start($1, $2, $3)::text", [
      graph,
      ["1", "1", "1"].join(RECORD),
      ["once", "once", ""].join(RECORD),
    ])
    .catch((e: unknown) => (e as { code: string }).code);
  await play.drain();
  const runs = await play.db.value<number>("select count(*)::int from sluice.workflow_run");
  return { answer, runs, started: play.started.length };
});

/** Runs of many nodes and no task are pruned. */
export const prunedNodes = schedule({ mostNodes: 800, nodes: 0, runs: 0, calls: 3 }, async (scene) => {
  const play = await Play.on(scene, {});
  const nodes: Nodes = {};
  for (let i = 0; i < 400; i++) nodes[`nap ${i}`] = ["sleep", { ms: 0 }];
  await play.start(await play.declare(nodes), 1, 2, 3, 4, 5);
  await scene.moveClock(10_000);
  const count = (table: string): Promise<number> => play.db.value(`select count(*)::int from sluice.${table}`);
  let mostNodes = 0;
  let calls = 0;
  for (let more = true; more; calls++) {
    const before = await count("workflow_node");
    const text = "select pruned from sluice.workflow_prune(0, 0, 0, 1000)";
    more = (await play.db.value<number>(text)) >= 1_000;
    mostNodes = Math.max(mostNodes, before - (await count("workflow_node")));
  }
  return {
    mostNodes,
    nodes: await count("workflow_node"),
    runs: await count("workflow_run"),
    calls,
  };
});

/** A node refers a hundred times to a result of 500 kB; the settle before it checks the size of the input. */
export const inputOfManyLarge = schedule(
  { code: "input_too_large", few: true, listCode: "input_too_large", listFew: true },
  async (scene) => {
    const play = await Play.on(scene, { large: {}, small: {} });
    const result = randomBytes(250_000).toString("hex");
    /** How a node after two tasks fails, and whether that read few pages. */
    const failing = async (node: Nodes[string]): Promise<{ code: string; few: boolean }> => {
      const both: Nodes = {
        large: ["task", { type: "large" }],
        small: ["task", { type: "small" }],
        next: node,
      };
      const run = await play.run(both);
      const [large, small] = await play.claim(2);
      await play.settle(large!, { result });
      const step = `select id from sluice.step(${play.worker.id}, 16, '{}', 0, '{${small!.id}}', '{${small!.token}}')`;
      await play.db.begin();
      const seen = await pages((text) => play.db.rows(text), step);
      await play.db.rollback();
      await play.settle(small!, { result: 1 });
      const code = (await play.errorOf(run, "next"))!.code;
      return { code, few: seen < 3_000 };
    };
    const refs = Array.from({ length: 100 }, () => ref("large"));
    const after = ["large", "small"];
    const { code, few } = await failing(["task", { type: "small", after, input: refs }]);
    const each = { type: "small", after, items: [1, 2], input: refs };
    const { code: listCode, few: listFew } = await failing(["each", each]);
    return { code, few, listCode, listFew };
  },
);

const active = (play: Play): Promise<boolean> => play.db.value("select exists (select from sluice.workflow_active)");
const DEACTIVATE = "select sluice.workflow_deactivate()";
const one: Nodes = { one: ["task", { type: "item" }] };

/** One run is over, and another is started in a transaction that is open while a keeper looks. */
export const startBesideLook = schedule(
  { waited: false, meanwhile: true, state: "succeeded", after: false },
  async (scene) => {
    const play = await Play.on(scene, { item: {} });
    const [first, second] = await scene.sessions(2);
    const graph = await play.declare(one);
    const start = "select ids[1]::int from sluice.workflow_start($1, 'null')";
    await play.start(graph);
    await play.drain();
    await first.begin();
    await second.begin();
    const run = await first.value<number>(start, [graph]);
    const starts = second.value<number>(start, [graph]);
    const waited = await scene.blocked(starts);
    await play.db.value(DEACTIVATE);
    const meanwhile = await active(play);
    await first.commit();
    await second.commit();
    await play.drain();
    const state = await play.state(run);
    await scene.moveClock(60_000);
    await play.db.value(DEACTIVATE);
    return { waited, meanwhile, state, after: await active(play) };
  },
);

/** A start commits after a keeper has found no live run, and before it has the lock. */
export const committedBesideLook = schedule({ active: true, state: "succeeded" }, async (scene) => {
  const play = await Play.on(scene, { item: {} });
  const [user, keeper, gate] = await scene.sessions(3);
  const graph = await play.declare(one);
  await play.start(graph);
  await play.drain();
  await user.begin();
  const start = "select ids[1]::int from sluice.workflow_start($1, 'null')";
  const id = await user.value<number>(start, [graph]);
  // The look has found no live run when it wants to write down its time.
  await gate.begin();
  await gate.rows("lock table sluice.workflow_looked in exclusive mode");
  const looks = keeper.value(DEACTIVATE);
  await scene.blocked(looks);
  await user.commit();
  await gate.rollback();
  await looks;
  await play.drain();
  return { active: await active(play), state: await play.state(id) };
});

/** A transaction's snapshot shows that runs are active; then a keeper finds that none is live. */
export const startOfOldActivity = schedule({ refused: "40001", runs: 1 }, async (scene) => {
  const play = await Play.on(scene, { item: {} });
  const [user] = await scene.sessions(1);
  const graph = await play.declare(one);
  await play.start(graph);
  await play.drain();
  await user.begin("repeatable read");
  await user.rows("select from sluice.workflow_active");
  await play.db.value(DEACTIVATE);
  const refused = await user
    .rows("select sluice.workflow_start($1, 'null')", [graph])
    .then(() => null)
    .catch((e: unknown) => (e as { code: string }).code);
  await user.rows("commit");
  const runs = await play.db.value("select count(*)::int from sluice.workflow_run");
  return { refused, runs };
});

/** Notes of others fill the keeper's batch; behind them is that of an event which was sent in time, and a late one. */
export const eventBehindNotes = schedule({ inTime: "succeeded", late: "failed" }, async (scene) => {
  const play = await Play.on(scene, {});
  const nodes: Nodes = { wait: ["waitFor", { event: "go", timeoutMs: 60_000 }] };
  const [inTime, late] = [await play.run(nodes), await play.run(nodes)];
  const send = "select sluice.workflow_send($1, 'go', '1')";
  const other = await play.run(waiting);
  for (let i = 0; i < 20; i++) await play.db.value(send, [other]);
  await play.db.value(send, [inTime]);
  await scene.moveClock(60_001);
  await play.db.value(send, [late]);
  for (let i = 0; i < 4; i++) await play.db.value("select moved from sluice.workflow_keep(10)");
  return { inTime: await play.state(inTime), late: await play.state(late) };
});

const waiting: Nodes = { wait: ["waitFor", { event: "go" }] };
const RECORD = "\u001e";

/** A fan-out is paused while a placer has locked it; when it is resumed, its type needs no code any more. */
export const resumedInHand = schedule({ waited: false, state: "succeeded" }, async (scene) => {
  const play = await Play.on(scene, { coded: {} });
  await play.db.rows("update sluice.contract set limit_ids = null where type = 'coded'");
  const [placer, operator] = await scene.sessions(2);
  const run = await play.run({ all: ["each", { type: "coded", items: [1, 2, 3], window: 2 }] });
  const stream = play.streamOf("coded");
  await placer.begin();
  await placer.rows("select run from sluice.workflow_take($1)", [[stream]]);
  const inputs = ["1", "2", "3"].join(RECORD);
  await placer.value("select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 25, $3)", [run, stream, inputs]);
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
