import { refusal, type Scene, type Session } from "../../support/sql.js";
import { schedule } from "../schedules/schedule.js";
import { Play, ref, type InHand, type Nodes } from "./play.js";

const RECORD = "\u001e";

/** Plain types, and `coded`, whose keys only code can compute. */
export async function placingPlay(scene: Scene): Promise<Play> {
  const play = await Play.on(scene, { a: {}, b: {}, coded: {}, parent: {}, item: {} });
  await play.db.rows("update sluice.contract set limit_ids = null where type = 'coded'");
  return play;
}

/** One task and a fan-out, both to be placed by code. */
const coded: Nodes = {
  one: ["task", { type: "coded", input: 7 }],
  many: ["each", { type: "coded", items: [0, 1, 2, 3, 4], input: ref("item"), window: 2, onError: "finish" }],
};

export const long = (length: number): Nodes => ({
  long: ["each", { type: "a", items: Array.from({ length }, (_, i) => i), input: ref("item"), window: 3 }],
});

interface TakenRow {
  readonly run: string | null;
  readonly node: number;
  readonly stream: number;
  readonly total: number;
  readonly again: boolean;
}

/** What workflow_take says. */
export async function takeRow(play: Play, db: Session, types = ["coded"]): Promise<TakenRow> {
  const streams = types.map((t) => play.streamOf(t));
  const [row] = await db.rows<TakenRow>("select * from sluice.workflow_take($1)", [streams]);
  return row!;
}

/** Inserts the tasks of the taken node without marking it as placed. */
export async function insertTasks(db: Session, { run, node, stream, total }: TakenRow) {
  const inputs = Array.from({ length: total }, (_, i) => String(i)).join(RECORD);
  const values = [run, node, stream, inputs];
  await db.value("select sluice.workflow_place($1, $2, 0, $3, 0, 25, $4)::text", values);
}

interface SmallRow {
  readonly run: string | null;
  readonly node: number;
  readonly stream: number;
  readonly input: string;
}

/** What workflow_take_small says. */
export function takeSmallRows(
  play: Play,
  db: Session,
  { types = ["coded"], max = 100, bytes = 1_000_000 } = {},
): Promise<SmallRow[]> {
  const streams = types.map((t) => play.streamOf(t));
  return db.rows("select * from sluice.workflow_take_small($1, $2, $3)", [streams, max, bytes]);
}

/** Places them all. lock: their runs, or in another order. */
export function placeSmallRows(
  db: Session,
  nodes: readonly SmallRow[],
  lock = nodes.map(({ run }) => run),
): Promise<unknown> {
  const inputs = nodes.map(({ input }) => input).join(RECORD);
  return db.value("select sluice.workflow_place_small($1, $2, $3, $4, 0, 25, $5)::text", [
    lock,
    nodes.map(({ run }) => run),
    nodes.map(({ node }) => node),
    nodes[0]!.stream,
    inputs,
  ]);
}

export const sayPlaced = (db: Session, { run, node }: TakenRow): Promise<boolean> =>
  db.value("select sluice.workflow_placed($1, $2)", [run, node]);

const pause = (db: Session, run: number, paused: boolean): Promise<boolean> =>
  db.value("select sluice.workflow_pause($1, $2)", [run, paused]);

/** A run is paused before its first nodes are placed. */
export const pausedUnplaced = schedule(
  { held: ["held", "held", "held"], placed: 0, resumed: ["placing", "placing", "placing"] },
  async (scene) => {
    const play = await placingPlay(scene);
    const run = await play.run({ ...coded, ...long(1_500) });
    await pause(play.db, run, true);
    const held = Object.values(await play.nodes(run));
    const taken = await takeRow(play, play.db);
    const many = await play.db.value<boolean>("select sluice.workflow_place_many()");
    const placed = (taken.run === null ? 0 : 1) + (many ? 1 : 0);
    await pause(play.db, run, false);
    return { held, placed, resumed: Object.values(await play.nodes(run)) };
  },
);

/** A run is paused and resumed while its fan-out is placed, and its window changes meanwhile. */
export const resumedBesidePlacer = schedule({ resumed: "accepted", placed: true, started: 3 }, async (scene) => {
  const play = await placingPlay(scene);
  const [placer] = await scene.sessions(1);
  const run = await play.run({ many: coded["many"]! });
  const window = "select sluice.workflow_window($1, 'many', $2)";
  await play.db.value(window, [run, 4]);
  await placer.begin();
  const taken = await takeRow(play, placer);
  await insertTasks(placer, taken);
  await pause(play.db, run, true);
  await play.db.value(window, [run, 3]);
  const resumed = await refusal(pause(play.db, run, false));
  const placed = await sayPlaced(placer, taken);
  await (placed ? placer.commit() : placer.rollback());
  return { resumed, placed, started: (await play.claim()).length };
});

/** The same with a node of one task, whom another places if the first gives up. */
export const resumedBesideOne = schedule({ resumed: "accepted", again: true, rows: 1 }, async (scene) => {
  const play = await placingPlay(scene);
  const [placer] = await scene.sessions(1);
  const run = await play.run({ one: coded["one"]! });
  await placer.begin();
  await takeRow(play, placer);
  await pause(play.db, run, true);
  const resumed = await refusal(pause(play.db, run, false));
  await placer.rollback();
  const again = (await takeRow(play, play.db)).run !== null;
  const rows = await play.db.value<number>("select count(*)::int from sluice.workflow_unplaced");
  return { resumed, again, rows };
});

/** A placer finds a row that a pause has left behind while an uncommitted resume relies on it. */
export const staleBesideResume = schedule({ nodes: { one: "placing" }, rows: 1 }, async (scene) => {
  const play = await placingPlay(scene);
  const [placer, resumer] = await scene.sessions(2);
  const run = await play.run({ one: coded["one"]! });
  await placer.begin();
  await takeRow(play, placer);
  await pause(play.db, run, true);
  await placer.rollback();
  await resumer.begin();
  await pause(resumer, run, false);
  await takeRow(play, placer);
  await resumer.commit();
  const rows = await play.db.value<number>("select count(*)::int from sluice.workflow_unplaced");
  return { nodes: await play.nodes(run), rows };
});

/** Tasks for a node that runs already, and for one of another type. */
export const placedUnasked = schedule(
  { running: "workflow_over", other: "invalid_option", none: "workflow_over" },
  async (scene) => {
    const play = await placingPlay(scene);
    const run = await play.run({ plain: ["task", { type: "a" }], one: coded["one"]! });
    const place = (node: number, type: string, of = run): Promise<string> =>
      refusal(
        play.db.value("select sluice.workflow_place($1, $2, 1, $3, 0, 25, '1')::text", [of, node, play.streamOf(type)]),
      );
    const running = await place(1, "a");
    return { running, other: await place(2, "a"), none: await place(1, "a", run + 1) };
  },
);

/** A task with an order key fans out, and so does its item, which has none: to the same key, to another, to none. */
export const itemsOfHeldKey = schedule(
  {
    same: "invalid_key",
    below: "invalid_key",
    other: "accepted",
    scoped: "accepted",
    none: "accepted",
  },
  async (scene) => {
    const play = await placingPlay(scene);
    const stream = play.streamOf("parent");
    await play.db.rows("select sluice.enqueue_many($1, 0, 25, '1', null, null, 'k')", [stream]);
    const [parent] = await play.claim();
    let maps = 0;
    const map = async (of: InHand, orders: string | null): Promise<string> => {
      await play.db.begin();
      const { run } = (
        await play.db.rows<{ run: string }>(
          "select run from sluice.workflow_map($1, $2, $3, $4, $5, 1, null, 'finish')",
          [play.worker.id, of.id, of.token, `m${maps++}`, stream],
        )
      )[0]!;
      const place = "select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 25, '1', null, null, $3)";
      const answer = await refusal(play.db.value(place, [run, stream, orders]));
      if (answer !== "accepted") {
        await play.db.rollback();
        return answer;
      }
      await play.db.value("select sluice.workflow_placed($1, 1::smallint)", [run]);
      await play.db.commit();
      return answer;
    };
    const same = await map(parent!, "k");
    const none = await map(parent!, null);
    const [item] = await play.claim();
    const below = await map(item!, "k");
    const other = await map(parent!, "another");
    const scoped = await map(parent!, "scope\u001fk");
    return { same, below, other, scoped, none };
  },
);

/** A node fails while another session has locked it. */
export const failedInHand = schedule({ waited: false, placed: false, state: "failed" }, async (scene) => {
  const play = await placingPlay(scene);
  const [placer, other] = await scene.sessions(2);
  const run = await play.run({ one: coded["one"]! });
  await placer.begin();
  const taken = await takeRow(play, placer);
  await insertTasks(placer, taken);
  await other.begin();
  const fails = other.value("select sluice.workflow_misplaced($1, 1::smallint, '{}')", [run]);
  const waited = await scene.blocked(fails);
  // A session that waits for the run while it holds the node must not block the run.
  if (waited) await placer.rollback();
  await fails;
  const said = waited ? null : sayPlaced(placer, taken);
  await other.commit();
  const placed = (await said) ?? false;
  await (placed ? placer.commit() : placer.rollback());
  return { waited, placed, state: await play.state(run) };
});

/** A node that was put off eight times is so once more, and again. */
export const putOffTenTimes = schedule({ taken: false, nine: "placing", ten: "failed", left: 0 }, async (scene) => {
  const play = await placingPlay(scene);
  const run = await play.run({ one: coded["one"]! });
  const putOff = (): Promise<boolean> =>
    play.db.value("select sluice.workflow_put_off($1, 1::smallint, 'XX000', 'no luck')", [run]);
  await play.db.rows("update sluice.workflow_unplaced set tries = 8");
  await putOff();
  const taken = (await takeRow(play, play.db)).run !== null;
  const nine = (await play.nodes(run))["one"]!;
  await putOff();
  const left = await play.db.value<number>("select count(*)::int from sluice.workflow_unplaced");
  return { taken, nine, ten: (await play.nodes(run))["one"]!, left };
});

/** Two that believe to hold the same task open the same map of it at the same moment. */
export const mapOpenedTwice = schedule(
  { waited: true, second: "accepted", fresh: false, same: true },
  async (scene) => {
    const play = await placingPlay(scene);
    const [zombie, holder] = await scene.sessions(2);
    await play.db.enqueue(play.streamOf("parent"));
    const [parent] = await play.claim();
    const open = (db: Session): Promise<{ run: string; fresh: boolean }[]> =>
      db.rows("select * from sluice.workflow_map($1, $2, $3, 'm', $4, 1, 1, 'finish')", [
        play.worker.id,
        parent!.id,
        parent!.token,
        play.streamOf("item"),
      ]);
    await zombie.begin();
    const [made] = await open(zombie);
    const node = { run: made!.run, node: 1, stream: play.streamOf("item"), total: 1, again: false };
    await insertTasks(zombie, node);
    await sayPlaced(zombie, node);
    const opens = open(holder);
    const waited = await scene.blocked(opens);
    await zombie.commit();
    const second = await refusal(opens);
    const [found] = second === "accepted" ? await opens : [];
    return { waited, second, fresh: found?.fresh ?? false, same: found?.run === made!.run };
  },
);

/** One session locks a run's row, another pauses the run, and a third continues to work. */
export const pausedBesideHolder = schedule(
  { claimed: "accepted", tasks: 1, answer: "database_busy" },
  async (scene) => {
    const play = await placingPlay(scene);
    const [holder, operator] = await scene.sessions(2);
    const run = await play.run({ one: ["task", { type: "a" }] });
    await holder.begin();
    await holder.rows("select from sluice.workflow_run where id = $1 for update", [run]);
    let over = false;
    const asks = refusal(pause(operator, run, true)).finally(() => (over = true));
    await scene.blocked(asks, operator);
    await play.db.script("set lock_timeout = '4s'");
    const claims = play.claim();
    const claimed = await refusal(claims);
    // Else it was not beside it.
    const tasks = over ? 0 : play.started.length;
    // A worker that was stopped by it has shown enough.
    if (claimed !== "accepted") await holder.rollback();
    const answer = await asks;
    await holder.rollback();
    return { claimed, tasks, answer };
  },
);

/** What a placer that stands still is up against, in a transaction of ours and in a user's. */
export const standingStill = schedule(
  { taken: "30s", small: "30s", locked: ["5s", "5s"], over: "0", held: "30s", users: "0" },
  async (scene) => {
    const play = await placingPlay(scene);
    const [placer] = await scene.sessions(1);
    const run = await play.run({ one: coded["one"]! });
    const patience = (): Promise<string> =>
      placer.value("select current_setting('idle_in_transaction_session_timeout')");
    const hold = async (ours: boolean): Promise<string> => {
      await placer.begin();
      await placer.value("select sluice.workflow_lock_unplaced($1, 1::smallint, $2)", [run, ours]);
      const seen = await patience();
      await placer.rollback();
      return seen;
    };
    await placer.begin();
    const row = await takeRow(play, placer);
    const taken = await patience();
    await insertTasks(placer, row);
    await sayPlaced(placer, row);
    const locked = [await patience()];
    await placer.rollback();
    const over = await patience();
    await placer.begin();
    const rows = await takeSmallRows(play, placer);
    const small = await patience();
    await placeSmallRows(placer, rows);
    locked.push(await patience());
    await placer.rollback();
    return { taken, small, locked, over, held: await hold(true), users: await hold(false) };
  },
);

const single: Nodes = { one: ["task", { type: "coded", input: ref("input") }] };

/** One of three runs is cancelled after their nodes were taken together. */
export const cancelledAmongMany = schedule({ answer: "workflow_over", tasks: 0, later: 2 }, async (scene) => {
  const play = await placingPlay(scene);
  const [placer] = await scene.sessions(1);
  const runs = await play.start(await play.declare(single), 1, 2, 3);
  await placer.begin();
  const nodes = await takeSmallRows(play, placer);
  await play.db.value("select sluice.workflow_cancel($1)", [runs[1]]);
  const answer = await refusal(placeSmallRows(placer, nodes));
  await (answer === "accepted" ? placer.commit() : placer.rollback());
  const count = "select count(*)::int from sluice.workflow_task";
  const tasks = await play.db.value<number>(count);
  const later = (await takeSmallRows(play, play.db)).filter(({ run }) => run !== null).length;
  return { answer, tasks, later };
});

/** Two runs are placed together while another session has locked the older one. */
export const lockedInOrder = schedule({ waited: true, newerIsFree: true, tasks: 2 }, async (scene) => {
  const play = await placingPlay(scene);
  const [placer, holder] = await scene.sessions(2);
  const runs = await play.start(await play.declare(single), 1, 2);
  const lock = "select from sluice.workflow_run where id = $1 for update skip locked";
  await holder.begin();
  await holder.rows(lock, [runs[0]]);
  await placer.begin();
  const nodes = await takeSmallRows(play, placer);
  const places = placeSmallRows(placer, nodes, nodes.map(({ run }) => run).toReversed());
  const waited = await scene.blocked(places);
  const newerIsFree = (await play.db.rows(lock, [runs[1]])).length === 1;
  await holder.rollback();
  await places;
  await placer.commit();
  return { waited, newerIsFree, tasks: (await play.claim()).length };
});

/** The last try of a node fails while a resume of its run is not committed. */
export const lastTryBesideResume = schedule(
  { resumed: "accepted", tried: "accepted", node: "failed" },
  async (scene) => {
    const play = await placingPlay(scene);
    const [resumer, placer] = await scene.sessions(2);
    const run = await play.run({ one: coded["one"]! });
    await placer.begin();
    await takeRow(play, placer);
    await pause(play.db, run, true);
    await placer.rollback();
    await play.db.rows("update sluice.workflow_unplaced set tries = 9");
    await resumer.begin();
    await resumer.rows("select from sluice.workflow_run where id = $1 for update", [run]);
    const tries = placer.value("select sluice.workflow_put_off($1, 1::smallint, 'XX000', 'no luck')", [run]);
    await scene.blocked(tries);
    const resumed = await refusal(pause(resumer, run, false));
    await (resumed === "accepted" ? resumer.commit() : resumer.rollback());
    const tried = await refusal(tries);
    return { resumed, tried, node: (await play.nodes(run))["one"]! };
  },
);

/** A process begins to run the user's code for nodes that it has taken, and dies of it. */
async function dieWith(play: Play, placer: Session, nodes: readonly SmallRow[] | [TakenRow]) {
  const values = [nodes.map(({ run }) => run), nodes.map(({ node }) => node), play.worker.id];
  await play.db.value("select sluice.workflow_try($1, $2, $3)", values);
  await placer.rollback();
}

const dueNow = "update sluice.workflow_unplaced set due_at = 'epoch'";

/** The code of a node that was tried eight times kills its process, and once more. */
export const killedTenTimes = schedule(
  { tries: [9, 10], again: [true, true, true], node: "failed", code: "poisoned" },
  async (scene) => {
    const play = await placingPlay(scene);
    const [placer] = await scene.sessions(1);
    const run = await play.run({ one: coded["one"]! });
    await play.db.rows("update sluice.workflow_unplaced set tries = 8, due_at = 'epoch'");
    const [tries, again]: [number[], boolean[]] = [[], []];
    for (let i = 0; i < 2; i++) {
      await placer.begin();
      await dieWith(play, placer, [await takeRow(play, placer)]);
      again.push((await takeRow(play, play.db)).again);
      tries.push(await play.db.value("select tries::int from sluice.workflow_unplaced"));
      await play.db.rows(dueNow);
    }
    again.push((await takeRow(play, play.db)).again);
    const node = (await play.nodes(run))["one"]!;
    return { tries, again, node, code: (await play.errorOf(run, "one"))?.code };
  },
);

/** A process dies while it places a batch of three. */
export const diedWithBatch = schedule(
  { batch: [null], counted: [1, 1, 1], late: [null], placed: 3, tasks: 3 },
  async (scene) => {
    const play = await placingPlay(scene);
    const [placer] = await scene.sessions(1);
    await play.start(await play.declare(single), 1, 2, 3);
    await placer.begin();
    await dieWith(play, placer, await takeSmallRows(play, placer));
    const batch = (await takeSmallRows(play, play.db)).map(({ run }) => run);
    await takeRow(play, play.db);
    const counted = (await play.db.rows<{ tries: number }>("select tries from sluice.workflow_unplaced")).map(
      ({ tries }) => tries,
    );
    await play.db.rows(dueNow);
    const late = (await takeSmallRows(play, play.db)).map(({ run }) => run);
    let placed = 0;
    for (let i = 0; i < counted.length; i++) {
      await placer.begin();
      const taken = await takeRow(play, placer);
      if (taken.run === null) {
        await placer.rollback();
        continue;
      }
      await insertTasks(placer, taken);
      placed += (await sayPlaced(placer, taken)) ? 1 : 0;
      await placer.commit();
    }
    return { batch, counted, late, placed, tasks: (await play.claim()).length };
  },
);

/** A worker with a task in flight dies while it places a node, before or after this is detected. */
export const diedPlacing = schedule({ crashes: { unseen: 0, seen: 0, otherwise: 1 }, back: 3 }, async (scene) => {
  const play = await placingPlay(scene);
  const [placer] = await scene.sessions(1);
  const expire = "update sluice.worker set expires_at = sluice.clock() - interval '1 s'";
  let back = 0;
  const crashes = async (how: "unseen" | "seen" | "otherwise"): Promise<number> => {
    await play.db.rows("delete from sluice.crash");
    const streams = ["a", "coded"].map((t) => play.streamOf(t));
    play.worker = await play.db.register(streams);
    await play.db.enqueue(streams[0]!);
    await play.claim();
    const run = await play.run({ one: coded["one"]! });
    await placer.begin();
    const taken = await takeRow(play, placer);
    if (how === "otherwise") await placer.rollback();
    else await dieWith(play, placer, [taken]);
    if (how === "seen") await takeRow(play, play.db);
    await play.db.rows(expire);
    back += await play.db.value<number>("select tasks from sluice.reap()");
    await play.db.value("select sluice.workflow_cancel($1)", [run]);
    await play.db.rows("select sluice.cancel(array(select id from sluice.ready))");
    return play.db.value("select count(*)::int from sluice.crash");
  };
  const [unseen, seen] = [await crashes("unseen"), await crashes("seen")];
  return { crashes: { unseen, seen, otherwise: await crashes("otherwise") }, back };
});
