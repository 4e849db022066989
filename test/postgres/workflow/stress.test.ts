import { expect, test } from "vitest";
import { Scene, refusal, type Session } from "../../support/sql.js";
import { mutate } from "../mutation.js";
import { judge, type Ended } from "./judge.js";
import { Play, type Ending, type Nodes } from "./play.js";
import { Dice, RANDOM_INPUT, randomGraph } from "./random.js";

const SECONDS = Number(process.env["SLUICE_MODEL_SECONDS"] ?? 16);
const TYPES = { free: {}, bounded: { concurrency: 3 }, coded: {} };
const RECORD = "\u001e";
// Expected refusals. Any other error, above all a deadlock, fails the test.
const ALLOWED = [
  "accepted",
  "workflow_stopping",
  "workflow_running",
  "workflow_paused",
  "unknown_event",
  "workflow_over",
  "lease_lost",
];

const ONE_AT_A_TIME = {
  in: "workflow_retry",
  edits: [["piece", "1"]],
} as const;

interface Held {
  readonly id: number;
  readonly token: string;
}

/** One process of many: claims, settles, places, dies; and now and then an operator or a user. */
class Actor {
  readonly #db: Session;
  readonly #dice: Dice;
  readonly #streams: readonly number[];
  readonly #coded: number;
  readonly #graphs: readonly number[];
  #worker = "";
  #hand: Held[] = [];
  #tokens: number;

  constructor(db: Session, dice: Dice, play: Play, graphs: readonly number[], n: number) {
    this.#db = db;
    this.#dice = dice;
    this.#streams = Object.keys(TYPES).map((t) => play.streamOf(t));
    this.#coded = play.streamOf("coded");
    this.#graphs = graphs;
    this.#tokens = (n + 1) * 1_000_000_000;
  }

  async turn(): Promise<void> {
    if (this.#worker === "") this.#worker = (await this.#db.register(this.#streams)).id;
    const dice = this.#dice.below(100);
    if (dice < 45) return this.#step();
    if (dice < 58) return this.#settle();
    if (dice < 60) return this.#map();
    if (dice < 66) return this.#inTransaction();
    if (dice < 74) return this.#place();
    if (dice < 80) return this.#start();
    if (dice < 82) return this.#die();
    if (dice < 86) return this.#again();
    if (dice < 92) return this.#operate();
    return this.#keep();
  }

  async #step(): Promise<void> {
    const token = String((this.#tokens += 16));
    const done = this.#hand.splice(0, this.#dice.below(4));
    const rows = await this.#db.rows<{ id: string | null }>("select id from sluice.step($1, $2, $3, $4, $5, $6, $7)", [
      this.#worker,
      token,
      this.#streams,
      this.#dice.below(5),
      done.length === 0 ? null : done.map((h) => h.id),
      done.length === 0 ? null : done.map((h) => h.token),
      done.map(() => '{"x":1}').join(RECORD) || null,
    ]);
    for (const { id } of rows) if (id !== null) this.#hand.push({ id: Number(id), token });
  }

  async #settle(): Promise<void> {
    const some = this.#hand.splice(0, 1 + this.#dice.below(3));
    if (some.length === 0) return;
    await this.#db.value("select sluice.settle($1, $2, $3, $4, $5, null)::text", [
      this.#worker,
      some.map((h) => h.id),
      some.map((h) => h.token),
      some.map(() => this.#dice.of("fail", "fail", "retry", "retry", "release", "snooze", "cancel")),
      some.map(() => 0),
    ]);
  }

  /** A handler fans out under one of two names and sleeps, or is taken from its worker before it can. */
  async #map(): Promise<void> {
    const task = this.#hand.shift();
    if (task === undefined) return;
    const [free, n] = [this.#streams[0]!, 1 + this.#dice.below(4)];
    await this.#db.begin();
    const [made] = await this.#db.rows<{ run: string; fresh: boolean }>(
      "select run, fresh from sluice.workflow_map($1, $2, $3, $4, $5, $6, 2, $7)",
      [
        this.#worker,
        task.id,
        task.token,
        `m${this.#dice.below(2)}`,
        free,
        n,
        this.#dice.of("failFast", "finish", "collect"),
      ],
    );
    if (made!.fresh) {
      const inputs = Array.from({ length: n }, () => "1").join(RECORD);
      const place = "select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 25, $3)";
      await this.#db.value(place, [made!.run, free, inputs]);
      await this.#db.value("select sluice.workflow_placed($1, 1::smallint)", [made!.run]);
    }
    await this.#db.commit();
    await this.#db.value("select sluice.settle($1, $2, $3, $4, '{0}', $5)::text", [
      this.#worker,
      [task.id],
      [task.token],
      [this.#dice.of("wait", "wait", "fail", "cancel")],
      `[${made!.run}]`,
    ]);
  }

  async #inTransaction(): Promise<void> {
    const [task] = this.#hand;
    await this.#db.begin();
    if (task !== undefined && this.#dice.chance(60)) {
      const values = [this.#worker, task.id, task.token];
      await this.#db.value("select sluice.settle_in_transaction($1, $2, $3, '2', true)", values);
    } else {
      await this.#db.rows(
        "select sluice.cancel(array(select id from sluice.workflow_task order by hashint8(id + $1) limit 2))",
        [this.#dice.below(1_000)],
      );
    }
    await (this.#dice.chance(70) ? this.#db.commit() : this.#db.rollback());
  }

  async #place(): Promise<void> {
    await this.#db.begin();
    const [taken] = await this.#db.rows<{ run: string | null; node: number; total: number }>(
      "select run, node, total from sluice.workflow_take($1)",
      [[this.#coded]],
    );
    if (taken?.run == null) return void (await this.#db.commit());
    const text = await this.#db.value<string>("select sluice.workflow_inputs($1, $2, 0, 1000)", [
      taken.run,
      taken.node,
    ]);
    const inputs = JSON.parse(text) as unknown[];
    await this.#db.value("select sluice.workflow_place($1, $2, 0, $3, 0, 25, $4, null, null, $5)", [
      taken.run,
      taken.node,
      this.#coded,
      inputs.map((x) => JSON.stringify(x)).join(RECORD),
      inputs.map((_, i) => `k${i % 2}`).join(RECORD),
    ]);
    const placed = await this.#db.value<boolean>("select sluice.workflow_placed($1, $2)", [taken.run, taken.node]);
    await (placed && this.#dice.chance(90) ? this.#db.commit() : this.#db.rollback());
  }

  async #start(): Promise<void> {
    const inputs = Array.from({ length: 1 + this.#dice.below(2) }, () => JSON.stringify(RANDOM_INPUT));
    await this.#db.value("select ids[1] from sluice.workflow_start($1, $2)", [
      this.#dice.of(...this.#graphs),
      inputs.join(RECORD),
    ]);
  }

  async #die(): Promise<void> {
    await this.#db.rows("update sluice.worker set expires_at = sluice.clock() - interval '1 s' where id = $1", [
      this.#worker,
    ]);
    this.#hand = [];
    this.#worker = "";
    await this.#db.reap();
  }

  async #operate(): Promise<void> {
    const run = await this.#db.value<string | null>(
      "select id from sluice.workflow_run order by hashint8(id + $1) limit 1",
      [this.#dice.below(1_000)],
    );
    if (run === null || run === undefined) return;
    const verbs: (readonly [string, readonly unknown[]])[] = [
      ["select sluice.workflow_cancel($1)", [run]],
      ["select sluice.workflow_pause($1, $2)", [run, this.#dice.chance(40)]],
      ["select sluice.workflow_window($1, $2, $3)", [run, `n${this.#dice.below(5)}`, 1 + this.#dice.below(4)]],
      ["select sluice.workflow_retry(id) from sluice.workflow_run where id = $1 and parent is null", [run]],
      ["select sluice.workflow_retry(id) from sluice.workflow_run where id = $1 and parent is null", [run]],
      ["select sluice.workflow_continue($1, 2)", [run]],
      ["select sluice.workflow_cancel_maps($1, '{}', 2)", [run]],
      ["select sluice.workflow_follow($1, 2)", [run]],
      ["select sluice.workflow_send($1, 'go', '1')", [run]],
      ["select sluice.workflow_send($1, 'go', '2')", [run]],
      [
        "select sluice.retry((select id from sluice.done where state = 'failed' order by hashint8(id + $1) limit 1))",
        [Number(run)],
      ],
    ];
    const [text, values] = this.#dice.of(...verbs);
    await this.#db.rows(text, [...values]);
  }

  /** A run that did not succeed is retried, and something else is asked of it before all of it is back. */
  async #again(): Promise<void> {
    const run = await this.#db.value<string | null>(
      "select id from sluice.workflow_run where state in ('failed', 'cancelled') and parent is null order by hashint8(id + $1) limit 1",
      [this.#dice.below(1_000)],
    );
    if (run === null || run === undefined) return;
    await this.#db.rows("select sluice.workflow_retry($1)", [run]);
    const verbs = [
      "select sluice.workflow_cancel($1)",
      "select sluice.workflow_continue($1, 1)",
      "select sluice.workflow_cancel_maps($1, '{}', 1)",
      `select sluice.retry(d.id) from sluice.workflow_task w join sluice.done d on d.id = w.id and d.state <> 'succeeded'
        join sluice.workflow_node n on n.run = w.run and n.node = w.node and n.state = 'running' where w.run = $1 order by w.item desc limit 1`,
    ];
    await this.#db.rows(this.#dice.of(...verbs), [run]);
  }

  async #keep(): Promise<void> {
    const verbs = [
      "select moved from sluice.workflow_keep(20)",
      "select moved from sluice.workflow_keep(1)",
      "select sluice.workflow_orphans(20)",
      "select sluice.workflow_place_many()",
      "select sluice.keep_lanes(20)",
      "select moved from sluice.due(20)",
      "select sluice.reap()",
    ];
    await this.#db.rows(this.#dice.of(...verbs));
  }

  async act(until: () => boolean): Promise<string[]> {
    const troubles: string[] = [];
    while (!until()) {
      const code = await refusal(this.turn());
      if (code !== "accepted") await this.#db.rollback().catch(() => {});
      if (!ALLOWED.includes(code)) troubles.push(code);
      if (code === "lease_lost") [this.#worker, this.#hand] = ["", []];
    }
    return troubles;
  }
}

/** Runs everything to its end, and checks that nothing is left. */
async function bringToAnEnd(play: Play, dice: Dice): Promise<void> {
  const ending = (): Ending => (dice.chance(25) ? { fail: "x" } : { result: 1 });
  await play.db.rows("update sluice.worker set expires_at = sluice.clock() - interval '1 s'");
  await play.db.reap();
  play.worker = await play.db.register(play.worker.streams);
  play.hand = [];
  for (let round = 0; round < 400; round++) {
    const open = await play.db.rows<{ id: string }>("select id from sluice.workflow_run where finished_at is null");
    if (open.length === 0) break;
    await play.db.rows(
      "select sluice.workflow_pause(id, false) from sluice.workflow_run where paused and finished_at is null",
    );
    await play.db.rows(
      "select sluice.workflow_send(n.run, 'go', '1') from sluice.workflow_node n where n.state = 'running' and n.kind = 'waitFor'",
    );
    await placeAll(play);
    const suspects = await play.db.rows<{ id: string }>("select id from sluice.suspect");
    await play.db.cancel(suspects.map((s) => Number(s.id)));
    await play.drain(ending);
  }
  await play.drain(ending);
}

async function placeAll(play: Play): Promise<void> {
  const coded = play.streamOf("coded");
  for (;;) {
    const [taken] = await play.db.rows<{ run: string | null; node: number }>(
      "select run, node from sluice.workflow_take($1)",
      [[coded]],
    );
    if (taken?.run == null) return;
    const text = await play.db.value<string>("select sluice.workflow_inputs($1, $2, 0, 1000)", [taken.run, taken.node]);
    const inputs = (JSON.parse(text) as unknown[]).map((x) => JSON.stringify(x));
    await play.db.value("select sluice.workflow_place($1, $2, 0, $3, 0, 25, $4)", [
      taken.run,
      taken.node,
      coded,
      inputs.join(RECORD),
    ]);
    await play.db.value("select sluice.workflow_placed($1, $2)", [taken.run, taken.node]);
  }
}

interface Outcome {
  readonly run: string;
  readonly graph: number;
  readonly state: string;
  readonly stopped: boolean;
  readonly nodes: Record<string, { state: string } & Ended>;
}

async function outcomes(play: Play): Promise<Outcome[]> {
  return play.db.rows(`
    select r.id as run, r.graph, s.state, r.stopping as stopped, (
      select json_object_agg(p.name, json_build_object('state', p.state,
        'succeeded', (select count(*) from sluice.workflow_task w join sluice.done d on d.id = w.id and d.state = 'succeeded' where w.run = p.run and w.node = p.node),
        'failed', (select count(*) from sluice.workflow_task w join sluice.done d on d.id = w.id and d.state = 'failed' where w.run = p.run and w.node = p.node),
        'cancelled', (select count(*) from sluice.workflow_task w join sluice.done d on d.id = w.id and d.state = 'cancelled' where w.run = p.run and w.node = p.node)))
      from sluice.workflow_progress p where p.run = r.id) as nodes
    from sluice.workflow_run r join sluice.workflow_status s on s.id = r.id where r.graph is not null order by r.id`);
}

/** Plays for a while with this many processes, then checks every run. */
async function playOut(seed: number, actors: number, until: () => boolean): Promise<number> {
  // A retry brings back one task, so that there are always some that are not back.
  const scene = await Scene.open(mutate(ONE_AT_A_TIME));
  try {
    const play = await Play.on(scene, TYPES);
    await play.db.rows("update sluice.contract set limit_ids = null where type = 'coded'");
    const dice = new Dice(seed);
    const graphs = new Map<number, Nodes>();
    for (let i = 0; i < 12; i++) {
      const nodes = randomGraph(dice);
      graphs.set(await play.declare(nodes), nodes);
    }
    for (const graph of graphs.keys()) await play.start(graph, RANDOM_INPUT, RANDOM_INPUT);
    const sessions = await scene.sessions(actors);
    const cast = sessions.map((db, n) => new Actor(db, new Dice(seed * 100 + n), play, [...graphs.keys()], n));
    const troubles = (await Promise.all(cast.map((a) => a.act(until)))).flat();
    expect(troubles).toEqual([]);
    expect(await play.violations()).toEqual([]);
    await bringToAnEnd(play, dice);
    expect(await play.violations()).toEqual([]);
    const seen = await outcomes(play);
    for (const { run, graph, state, stopped, nodes } of seen) {
      if (stopped) {
        expect([run, state]).toEqual([run, "cancelled"]);
        continue;
      }
      const wanted = judge(graphs.get(graph)!, (name) => nodes[name]!);
      const states = Object.fromEntries(Object.entries(nodes).map(([name, n]) => [name, n.state]));
      expect({ seed, run, state, nodes: states }).toEqual({ seed, run, ...wanted });
    }
    return seen.length;
  } finally {
    await scene.close();
  }
}

const TIMEOUT_MS = 120_000 + SECONDS * 4_000;

test(
  "one process alone brings every random run to the outcome that its graph prescribes",
  { timeout: TIMEOUT_MS },
  async () => {
    const end = performance.now() + (SECONDS * 1_000) / 2;
    for (let seed = 1; seed <= 4 || performance.now() < end; seed++) {
      let turns = 0;
      await playOut(seed, 1, () => ++turns > 300);
    }
  },
);

test(
  "four concurrent processes bring every random run to its outcome without a deadlock",
  { timeout: TIMEOUT_MS },
  async () => {
    const end = performance.now() + (SECONDS * 1_000) / 2;
    for (let seed = 1; seed <= 2 || performance.now() < end; seed++) {
      const enough = performance.now() + 3_000;
      expect(await playOut(seed, 4, () => performance.now() > enough)).toBeGreaterThan(0);
    }
  },
);
