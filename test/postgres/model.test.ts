import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { CLEAR, QUICK } from "../support/sql.js";
import { forAtMost } from "./budget.js";
import { Model, type Numbers, type Place, type Task } from "./model.js";
import { mutate, type Mutation } from "./mutation.js";

type Kind = "retry" | "fail" | "cancel" | "snooze" | "release";
const LETTER = { retry: "r", fail: "f", cancel: "c", snooze: "z", release: "b" } as const;
const LIMIT = { tenant: "tenant", mail: "mail", bounded: "bounded" } as const;
const UNLIMITED = 1_000;
// A slow machine tries fewer.
const TIME_MS_MAX = 16_000;

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await freshDatabase({ migrated: true });
  client = new pg.Client(database.url);
  await client.connect();
  await client.query(QUICK);
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

async function rows(text: string, values: unknown[] = []): Promise<unknown[][]> {
  // Named, so that each text is planned once.
  const found = await client.query({ name: text.slice(0, 60), text, values, rowMode: "array" });
  return found.rows as unknown[][];
}

/** The store, driven by the same commands as the model. */
class Store {
  #worker = "";
  #tokens = 1;
  readonly #token = new Map<number, string>();

  async open(numbers: Numbers): Promise<void> {
    await client.query(CLEAR);
    await client.query(
      `select sluice.declare_limit('tenant', null, ${numbers.tenant}), sluice.declare_limit('mail', ${numbers.mail}, null),
        sluice.declare_contract('bounded', 'default', 0, 25, false, null, false, '{1}', ${numbers.bounded}),
        sluice.declare_contract('free', 'default', 0, 25, false, null, false, '{1,2}', null)`,
    );
    await this.#register();
  }

  async enqueue(p: Place): Promise<void> {
    const limits = [...(p.tenant === null ? [] : [1]), ...(p.mail ? [2] : [])];
    await rows(
      `select sluice.enqueue_many($1, $2, $3, '{}', $4, $5, $6, $7, sluice.clock() + $8 * interval '1 hour')`,
      [
        p.stream === "bounded" ? 1 : 2,
        p.priority,
        p.attempts,
        limits.length === 0 ? null : limits,
        p.tenant,
        p.order,
        p.blocks,
        p.later ? 1 : null,
      ],
    );
  }

  async step(done: readonly Task[], n: number): Promise<number[]> {
    const token = String(this.#tokens++);
    const found = await rows("select id from sluice.step($1, $2, '{1,2}', $3, $4, $5)", [
      this.#worker,
      token,
      n,
      done.length === 0 ? null : done.map((t) => t.id),
      done.length === 0 ? null : done.map((t) => this.#token.get(t.id)),
    ]);
    const ids = found.map(([id]) => Number(id)).toSorted((a, b) => a - b);
    for (const id of ids) this.#token.set(id, token);
    return ids;
  }

  async settle(t: Task, kind: Kind, later: boolean): Promise<void> {
    const values = [this.#worker, [t.id], [this.#token.get(t.id)], [LETTER[kind]]];
    await rows("select sluice.settle($1, $2, $3, $4, $5, null)", [
      ...values,
      [later ? 3_600_000 : 0],
    ]);
    if (kind === "release") await this.keep();
  }

  async cancel(t: Task): Promise<void> {
    await rows("select answer from sluice.cancel($1)", [[t.id]]);
  }

  async retry(t: Task): Promise<void> {
    await rows("select sluice.retry($1)", [t.id]);
  }

  async unblock(t: Task): Promise<void> {
    await rows("select sluice.unblock($1)", [t.id]);
  }

  async due(hour: boolean): Promise<void> {
    if (hour) await rows("update sluice.scheduled set run_at = run_at - interval '61 minutes'");
    await rows("select sluice.due(1000)");
  }

  async crash(): Promise<void> {
    await rows("update sluice.worker set expires_at = sluice.clock() - interval '1 second'");
    await rows("select tasks from sluice.reap()");
    await this.#register();
    await this.keep();
  }

  async set(name: keyof Numbers, n: number): Promise<void> {
    const values = [LIMIT[name], name === "tenant" ? null : n, name === "tenant" ? n : null];
    await rows("select sluice.set_limit($1, $2, $3)", values);
    await this.keep();
  }

  async pause(paused: boolean): Promise<void> {
    await rows("select sluice.pause_queue('default', $1)", [paused]);
  }

  async keep(): Promise<void> {
    await rows("select sluice.keep_lanes(1000)");
  }

  async look(): Promise<{ violations: unknown; tasks: [number, string, number][] }> {
    const [[violations, tasks] = []] = await rows(
      `select (select json_agg(v) from sluice.violation v),
        (select json_agg(json_build_array(id, state, attempt) order by id) from sluice.task_state)`,
    );
    return { violations, tasks: (tasks ?? []) as [number, string, number][] };
  }

  async #register(): Promise<void> {
    const [[id] = []] = await rows("select sluice.register('w', '{1,2}', 3600000, 100)");
    this.#worker = id as string;
  }
}

type Command = (model: Model, store: Store) => Promise<void>;

/** One step: settles those picked of what runs, and claims n more. */
async function claim(
  model: Model,
  store: Store,
  n: number,
  picks: readonly boolean[] = [],
): Promise<void> {
  const done = model.running().filter((_, i) => picks[i] === true);
  expect(await store.step(done, n)).toEqual(model.step(done, n));
}

/** One of a list, whatever its length turns out to be. */
const one = <T>(list: readonly T[], at: number): T | undefined => list[at % (list.length || 1)];

const key = fc.constantFrom(null, "x", "y");
const place: fc.Arbitrary<Place> = fc
  .record({
    stream: fc.constantFrom("bounded" as const, "free" as const),
    priority: fc.integer({ min: -1, max: 2 }),
    order: key,
    blocks: fc.boolean(),
    tenant: key,
    mail: fc.boolean(),
    attempts: fc.integer({ min: 1, max: 3 }),
    later: fc.constantFrom(false, false, false, true),
  })
  .map((p) => ({ ...p, mail: p.mail && p.stream === "free" }));

const at = fc.nat({ max: 1_000 });
const command: fc.Arbitrary<[string, Command]> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.array(place, { minLength: 1, maxLength: 4 }).map((places): [string, Command] => [
      `enqueue ${JSON.stringify(places)}`,
      async (model, store) => {
        for (const p of places) {
          model.enqueue(p);
          await store.enqueue(p);
        }
      },
    ]),
  },
  {
    weight: 10,
    arbitrary: fc
      .tuple(fc.nat({ max: 6 }), fc.array(fc.boolean(), { maxLength: 8 }))
      .map(([n, picks]): [string, Command] => [
        `step ${n}, settles ${picks.map(Number).join("")}`,
        async (model, store) => {
          await claim(model, store, n, picks);
        },
      ]),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(
        fc.constantFrom<Kind[]>("retry", "fail", "cancel", "snooze", "release"),
        at,
        fc.boolean(),
        fc.constantFrom(false, false, true),
      )
      .map(([kind, i, later, stopped]): [string, Command] => [
        `${stopped ? "cancel, then " : ""}settle ${kind} ${i} ${later ? "later" : ""}`,
        async (model, store) => {
          if (model.running().length === 0) await claim(model, store, 3);
          const t = one(model.running(), i);
          if (t === undefined) return;
          if (stopped) await store.cancel(t);
          if (stopped) model.cancel(t);
          await store.settle(t, kind, later);
          model.settle(t, kind, later);
          if (kind === "release") model.keep();
        },
      ]),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom("cancel" as const, "retry" as const, "unblock" as const), at)
      .map(([verb, i]): [string, Command] => [
        `${verb} ${i}`,
        async (model, store) => {
          const t = one(model.tasks, i);
          if (t === undefined) return;
          await store[verb](t);
          model[verb](t);
        },
      ]),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.constantFrom<(keyof Numbers)[]>("tenant", "mail", "bounded"),
        fc.integer({ min: 0, max: 4 }),
      )
      .map(([name, n]): [string, Command] => [
        `set ${name} ${n}`,
        async (model, store) => {
          await store.set(name, n);
          model.set(name, n);
        },
      ]),
  },
  {
    weight: 2,
    arbitrary: fc.boolean().map((hour): [string, Command] => [
      `due${hour ? " an hour later" : ""}`,
      async (model, store) => {
        await store.due(hour);
        model.due(hour);
      },
    ]),
  },
  {
    weight: 1,
    arbitrary: fc.constant<[string, Command]>([
      "crash",
      async (model, store) => {
        await store.crash();
        model.crash();
      },
    ]),
  },
  {
    weight: 1,
    arbitrary: fc.boolean().map((paused): [string, Command] => [
      paused ? "pause" : "resume",
      async (model, store) => {
        await store.pause(paused);
        model.paused = paused;
      },
    ]),
  },
);

/** The store shows what the model says, and nothing that must never be. */
async function same(model: Model, store: Store): Promise<void> {
  const { violations, tasks } = await store.look();
  expect(violations).toBeNull();
  expect(tasks.map(([id, state, attempt]) => [id, word(state), attempt])).toEqual(
    model.tasks.map((t) => [t.id, shown(t), t.state === "over" ? expect.any(Number) : t.attempt]),
  );
}

const word = (state: string): string =>
  ["succeeded", "failed", "cancelled"].includes(state) ? "over" : state;

/** Who is through his lanes but stands at a total is shown as waiting. A suspect is ready. */
const shown = (t: Task): string =>
  t.state === "ready" && t.mail ? "waiting" : t.state === "suspect" ? "ready" : t.state;

/** With every limit lifted, everything comes to its end. */
async function drain(model: Model, store: Store): Promise<void> {
  await store.pause(false);
  model.paused = false;
  for (const name of ["tenant", "mail", "bounded"] as const) {
    await store.set(name, UNLIMITED);
    model.set(name, UNLIMITED);
  }
  for (const t of model.tasks.filter((x) => x.blocking || x.state === "suspect")) {
    const verb = t.blocking ? "unblock" : "cancel";
    await store[verb](t);
    model[verb](t);
  }
  for (let round = 0; round < 60 && model.tasks.some((t) => t.state !== "over"); round++) {
    await store.due(true);
    model.due(true);
    const done = model.running();
    expect(await store.step(done, 10)).toEqual(model.step(done, 10));
  }
  await same(model, store);
  expect(model.tasks.filter((t) => t.state !== "over")).toEqual([]);
}

const scripts = fc.array(command, { minLength: 10, maxLength: 30 });

async function agrees(commands: readonly (readonly [string, Command])[]): Promise<void> {
  const model = new Model();
  const store = new Store();
  await store.open(model.numbers);
  for (const [, run] of commands) {
    await run(model, store);
    await same(model, store);
  }
  await drain(model, store);
}

test("whatever is asked of it in whatever order, the store does what the model says", async () => {
  const property = fc.asyncProperty(scripts, forAtMost({ ms: TIME_MS_MAX, runsMin: 30 }, agrees));
  await fc.assert(property, { numRuns: 300 });
}, 60_000);

const property = fc.asyncProperty(scripts, agrees);

// seed: one that finds it within a few runs.
const mistakes: ({ what: string; seed: number } & Mutation)[] = [
  {
    what: "lets priority into an order key",
    seed: 1,
    in: "lane_place",
    edits: [["then 0::smallint", "then p_rank"]],
  },
  {
    what: "lets a retry lose its place in its order key",
    seed: 13,
    in: "settle_others",
    edits: [["ordered::int from fate", "0 from fate"]],
  },
  {
    what: "forgets that a task was asked to stop",
    seed: 4,
    in: "settle_others",
    edits: [["exists (select from sluice.stop s", "false and exists (select from sluice.stop s"]],
  },
  {
    what: "counts a crash as an attempt",
    seed: 1,
    in: "reap",
    edits: [["rank, attempt - 1, lanes from fate", "rank, attempt, lanes from fate"]],
  },
  {
    what: "claims the younger first",
    seed: 5,
    in: "pick",
    edits: [
      ["and i <= v_own order by rank, id limit", "and i <= v_own order by rank, id desc limit"],
    ],
  },
  {
    what: "claims from a queue that is paused",
    seed: 3,
    in: "sources",
    edits: [["and not st.paused", ""]],
  },
  {
    what: "gives back a slot too many",
    seed: 1,
    in: "cancel",
    edits: [["unnest(t.lanes[1:gone.held])", "unnest(t.lanes[1:gone.held + 1])"]],
  },
];

test.each(mistakes)(
  "a store that $what is found out",
  async (mistake) => {
    const restore = await rows(
      "select string_agg(pg_get_functiondef(oid), ';') from pg_proc where pronamespace = 'sluice'::regnamespace",
    );
    await mutate(mistake)({ script: (text) => client.query(text) });
    try {
      const { failed } = await fc.check(property, {
        numRuns: 100,
        endOnFailure: true,
        seed: mistake.seed,
      });
      expect(failed).toBe(true);
    } finally {
      await client.query(restore[0]![0] as string);
    }
  },
  60_000,
);

test("and the same runs find nothing in a store without a mistake", async () => {
  for (const seed of new Set(mistakes.map((m) => m.seed)))
    expect(await fc.check(property, { numRuns: 2, seed })).toMatchObject({ failed: false });
});
