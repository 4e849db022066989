import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { QUICK } from "../support/sql.js";
import { command, step, type Command } from "./model-commands.js";
import { Store } from "./model-store.js";
import type { Task } from "./model-terms.js";
import { Model } from "./model.js";
import { mutate, type Mutation } from "./mutation.js";

const UNLIMITED = 1_000;
// A slow machine tries fewer sequences. Raise the time to try more.
const SECONDS = Number(process.env["SLUICE_MODEL_SECONDS"] ?? 16);
const SCRIPTS_MIN = 30;
const SCRIPTS_AT_ONCE = 10;

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

/** The store shows what the model says, and nothing that must never be. */
async function same(model: Model, store: Store): Promise<void> {
  const { violations, tasks } = await store.look();
  expect(violations).toBeNull();
  expect(tasks.map(([id, state, attempt]) => [id, word(state), attempt])).toEqual(
    model.tasks.map((t) => [t.id, shown(t), t.state === "over" ? expect.any(Number) : t.attempt]),
  );
}

const word = (state: string): string => (["succeeded", "failed", "cancelled"].includes(state) ? "over" : state);

/** A task that has passed its lanes but waits at a total is shown as waiting. A suspect is ready. */
const shown = (t: Task): string => {
  if (t.state === "ready" && t.totals.length > 0) return "waiting";
  return t.state === "suspect" ? "ready" : t.state === "parked" ? "waiting" : t.state;
};

/** Lifts every limit, serves every type, and runs all tasks to their end. */
async function drain(model: Model, store: Store): Promise<void> {
  await store.pause(false);
  model.paused = false;
  await store.serve(["bounded", "free"]);
  model.serve(["bounded", "free"]);
  await store.declare("free", null);
  model.declare("free", null);
  for (const name of ["tenant", "mail", "bulk", "bounded"] as const) {
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
    const all = model.running().map(() => true);
    await step(model, store, 10, all);
  }
  await same(model, store);
  expect(model.tasks.filter((t) => t.state !== "over")).toEqual([]);
}

const scripts = fc.array(command, { minLength: 10, maxLength: 40 });

let tried = 0;

async function agrees(commands: readonly Command[], explains: boolean): Promise<void> {
  const model = new Model();
  const store = new Store(client, explains);
  await store.open();
  for (const { run } of commands) {
    await run(model, store);
    await same(model, store);
    tried++;
  }
  await drain(model, store);
}

const property = fc.asyncProperty(scripts, (commands) => agrees(commands, false));
const explained = fc.asyncProperty(scripts, (commands) => agrees(commands, true));

test(
  "the store behaves like the model for any sequence of commands",
  async () => {
    const until = performance.now() + SECONDS * 1_000;
    // fast-check tells the seed of a script that fails. In pieces, because its own limits of time would
    // leave a script going in the background, or count it as skipped.
    let played = 0;
    tried = 0;
    while (played < SCRIPTS_MIN || performance.now() < until) {
      await fc.assert(property, { numRuns: SCRIPTS_AT_ONCE });
      played += SCRIPTS_AT_ONCE;
    }
    console.info(`the store agreed with the model in ${tried} commands of ${played} scripts`);
  },
  60_000 + 10 * SECONDS * 1_000,
);

test("explain predicts every claim in any sequence of commands", async () => {
  await fc.assert(explained, { numRuns: SCRIPTS_MIN });
}, 120_000);

// seed: one that finds it within a few runs.
const mistakes: ({ what: string; seed: number } & Mutation)[] = [
  {
    what: "applies priority inside an order key",
    seed: 1,
    in: "lane_place",
    edits: [["rank", "p_rank"]],
  },
  {
    what: "lets a retried task lose its place in its order key",
    seed: 1,
    in: "settle_others",
    edits: [["ordered", "0"]],
  },
  {
    what: "forgets that a running task was cancelled",
    seed: 1,
    in: "settle_others",
    edits: [["stop", "false and exists"]],
  },
  {
    what: "counts a crash as an attempt",
    seed: 1,
    in: "reap",
    edits: [["attempt", ""]],
  },
  {
    what: "claims younger tasks first",
    seed: 2,
    in: "pick_at_once",
    edits: [["order", "desc limit"]],
  },
  {
    what: "claims from a paused queue",
    seed: 3,
    in: "sources",
    edits: [["paused", ""]],
    beside: { in: "sole_gated", edits: [["paused", ""]], beside: { in: "sources_at_gates", edits: [["paused", ""]] } },
  },
  {
    what: "releases one slot too many",
    seed: 1,
    in: "cancel_take",
    edits: [["held", "gone.held + 1"]],
  },
  {
    what: "releases the order key of a parked task",
    seed: 16,
    in: "park_closed_kinds",
    edits: [["head", "0"]],
  },
  {
    what: "counts only one of several totals",
    seed: 14,
    in: "gates_of",
    edits: [["sets", "[1:1] from"]],
  },
  {
    what: "releases tasks that the worker has received",
    seed: 1,
    in: "release_unknown",
    edits: [["known", "p_known is not null"]],
  },
  {
    what: "enqueues a tick of an outdated schedule",
    seed: 40,
    in: "fire_schedule",
    edits: [["revision", ""]],
  },
  {
    what: "does not count running tasks when a type gets its limit",
    seed: 11,
    in: "set_stream_gate",
    edits: [["count", "0"]],
  },
  {
    what: "lets a poisoned task run again",
    seed: 1,
    in: "reap_running",
    edits: [["suspect", "'suspect'"]],
  },
];

// The same for what explain says of it.
const lies: typeof mistakes = [
  {
    what: "reports a key as full after its slot was returned",
    seed: 1,
    in: "explain_lane",
    edits: [["freed", "false"]],
  },
  {
    what: "promises a free slot to every waiting task",
    seed: 1,
    in: "explain_lane",
    edits: [["before", "v_used < v_cap"]],
  },
  {
    what: "overlooks the type's own limit",
    seed: 9,
    in: "explain_reasons",
    edits: [["gate", ""]],
  },
];

async function foundOut(mistake: (typeof mistakes)[number], looked: typeof property) {
  const restore = await client.query<{ functions: string }>(
    "select string_agg(pg_get_functiondef(oid), ';') as functions from pg_proc where pronamespace = 'sluice'::regnamespace",
  );
  await mutate(mistake)({ script: (text) => client.query(text) });
  try {
    const { failed } = await fc.check(looked, {
      numRuns: 100,
      endOnFailure: true,
      seed: mistake.seed,
    });
    expect(failed).toBe(true);
  } finally {
    await client.query(restore.rows[0]!.functions);
  }
}

test.each(lies.map((lie) => [lie.what, lie] as const))(
  "the model detects an explain that %s",
  (_, lie) => foundOut(lie, explained),
  60_000,
);

test.each(mistakes.map((mistake) => [mistake.what, mistake] as const))(
  "the model detects a store that %s",
  (_, mistake) => foundOut(mistake, property),
  60_000,
);

test("the same sequences find nothing in a correct store", async () => {
  for (const seed of new Set(mistakes.map((m) => m.seed)))
    expect(await fc.check(property, { numRuns: 2, seed })).toMatchObject({ failed: false });
});
