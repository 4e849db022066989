import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scene, type Held, type Session, type Shape, type TestWorker } from "../support/sql.js";
import { forAtMost } from "./budget.js";
import { mutate, type Mutation } from "./mutation.js";

// Four parties with a few steps each, in any order. A party that waits for a lock takes its next
// step when it is free again. A slow machine tries fewer orders.
const TIME_MS_MAX = 1_200;
const RUNS_MAX = 50;

interface Stage {
  readonly worker: TestWorker;
  readonly other: TestWorker;
  readonly stream: number;
  readonly held: readonly Held[];
  readonly place: { readonly limits: readonly number[]; readonly keys?: readonly string[] };
}

type Step = (s: Session, stage: Stage) => Promise<unknown>;

interface Spec {
  readonly what: string;
  readonly number: number;
  readonly tasks: number;
  readonly order?: string;
  readonly parties: readonly (readonly Step[])[];
  /** The most that may ever run at once. */
  readonly most: number;
}

const complete =
  (i: number): Step =>
  async (s, { worker, held }) => {
    await s.begin();
    return s.step(worker, 0, [held[i]!]);
  };
const cancel =
  (id: number): Step =>
  async (s) => {
    await s.begin();
    return s.cancel([id]);
  };
const enqueue =
  (n: number): Step =>
  async (s, { stream, place }) => {
    await s.begin();
    return s.enqueue(stream, { n, ...place });
  };
const claim: Step = (s, { other }) => s.claim(other, 5);
const claimOpen: Step = async (s, { other }) => {
  await s.begin();
  return s.claim(other, 5);
};
const completeAsUser =
  (i: number): Step =>
  async (s, { worker, held }) => {
    await s.begin();
    return s.settleInTransaction(worker, held[i]!);
  };
const commit: Step = (s) => s.commit();
const rollback: Step = (s) => s.rollback();

const specs: readonly Spec[] = [
  {
    what: "a completion, an aborted completion, an aborted cancel and a claim leave no violation",
    number: 2,
    tasks: 4,
    parties: [[complete(0), commit], [complete(1), rollback], [cancel(3), rollback], [claim]],
    most: 2,
  },
  {
    what: "a completion, an enqueue, an aborted cancel of the head and a claim of one order key leave no violation",
    number: 1,
    tasks: 3,
    order: "o",
    parties: [[complete(0), commit], [enqueue(1), commit], [cancel(2), rollback], [claim]],
    most: 1,
  },
  {
    what: "the last completion of a lane, enqueues, an aborted claim and a claim leave no violation",
    number: 2,
    tasks: 1,
    parties: [
      [complete(0), commit],
      [enqueue(3), commit],
      [claimOpen, rollback],
      [claimOpen, commit],
    ],
    most: 2,
  },
  {
    what: "a lowered limit, a completion, an aborted completion and a claim leave no violation",
    number: 2,
    tasks: 5,
    parties: [
      [complete(0), commit],
      [
        async (s) => {
          await s.begin();
          const keyed = await s.value<boolean>("select total_declared is null from sluice.limits");
          return s.setLimit("limit", keyed ? { perKey: 1 } : { total: 1 });
        },
        commit,
      ],
      [complete(1), rollback],
      [claim],
    ],
    most: 2,
  },
  {
    what: "completions in users' transactions, one of them aborted, a cancel and a claim leave no violation",
    number: 2,
    tasks: 5,
    parties: [[completeAsUser(0), commit], [completeAsUser(1), rollback], [cancel(3), commit], [claim]],
    most: 2,
  },
];

type Part = "perKey" | "total";

/** One order of the turns, from an empty database to the end of every task. */
const tried =
  (scene: Scene, sessions: readonly Session[], spec: Spec, part: Part) =>
  async (order: number[]): Promise<void> => {
    await scene.clear();
    const stage = await prepare(sessions[4]!, spec, { [part]: spec.number });
    await play(scene, sessions, spec, stage, order);
    expect(await scene.violations()).toEqual([]);
    await finish(scene, sessions[4]!, spec, stage);
  };

function orders({ parties }: Spec): fc.Arbitrary<number[]> {
  const turns = parties.flatMap((steps, party) => steps.map(() => party));
  return fc.shuffledSubarray(turns, { minLength: turns.length });
}

describe.each(["perKey", "total"] as const)("random interleavings under a limit's %s:", (part) => {
  let scene: Scene;
  let sessions: Session[];

  beforeAll(async () => {
    scene = await Scene.open();
    sessions = await scene.sessions(5);
  });

  afterAll(() => scene.close());

  test.each(specs.map((spec) => [spec.what, spec] as const))("%s", async (_, spec) => {
    const budget = { ms: TIME_MS_MAX, runsMin: 5 };
    const run = forAtMost(budget, tried(scene, sessions, spec, part));
    await fc.assert(fc.asyncProperty(orders(spec), run), { numRuns: RUNS_MAX });
  });
});

const mistakes: ({ what: string; spec: number } & Mutation)[] = [
  {
    // If another waiter takes the slot, the lane keeps a waker. Only a single waiter shows the mistake.
    what: "a locked waiter is forgotten",
    spec: 1,
    in: "leave_order",
    edits: [["locked-out", "false"]],
  },
  {
    what: "a lane is not locked during a hand-over",
    spec: 2,
    in: "lock_lanes",
    edits: [["lane-lock", ""]],
  },
];

test.each(mistakes.map((m) => [m.what, m] as const))("random interleavings detect that %s", async (_, mistake) => {
  const scene = await Scene.open(mutate(mistake));
  try {
    const run = tried(scene, await scene.sessions(5), specs[mistake.spec]!, "perKey");
    const property = fc.asyncProperty(orders(specs[mistake.spec]!), run);
    const { failed } = await fc.check(property, { numRuns: 300, endOnFailure: true, seed: 1 });
    expect(failed).toBe(true);
  } finally {
    await scene.close();
  }
});

async function prepare(a: Session, spec: Spec, shape: Shape): Promise<Stage> {
  const limits = [await a.limit("limit", shape)];
  const stream = await a.type("t", { limits });
  const worker = await a.register([stream]);
  const other = await a.register([stream]);
  const place = shape.perKey === undefined ? { limits } : { limits, keys: ["x"] };
  const order = spec.order === undefined ? {} : { order: spec.order };
  await a.enqueue(stream, { n: spec.tasks, ...place, ...order });
  return { worker, other, stream, place, held: await a.claim(worker, spec.number) };
}

/** Takes the turns; that of a party which still waits is taken as soon as the party is free. */
async function play(
  scene: Scene,
  sessions: readonly Session[],
  { parties }: Spec,
  stage: Stage,
  order: readonly number[],
): Promise<void> {
  const steps = parties.map((p) => [...p]);
  const waiting = new Map<number, Promise<unknown>>();
  const left = [...order];
  while (left.length > 0) {
    for (const [party, work] of waiting) if (!(await scene.blocked(work, sessions[party]))) waiting.delete(party);
    const at = left.findIndex((party) => !waiting.has(party));
    if (at < 0) {
      await Promise.race(waiting.values());
      continue;
    }
    const [party] = left.splice(at, 1) as [number];
    const session = sessions[party]!;
    const work = steps[party]!.shift()!(session, stage);
    if (await scene.blocked(work, session)) waiting.set(party, work);
    else await work;
  }
  await Promise.all(waiting.values());
}

/** Runs all tasks to their end, and checks that the limit is never exceeded. */
async function finish(scene: Scene, a: Session, spec: Spec, stage: Stage): Promise<void> {
  for (let round = 0; round < 12; round++) {
    await a.keep();
    const rows = await a.rows<{ id: string; claim: string; worker: string }>(
      "select id, claim, worker from sluice.running",
    );
    expect(rows.length).toBeLessThanOrEqual(spec.most);
    for (const worker of [stage.worker, stage.other]) {
      const mine = rows.filter((r) => r.worker === worker.id);
      await a.step(
        worker,
        5,
        mine.map((r) => ({ id: Number(r.id), token: r.claim })),
      );
    }
  }
  expect(await scene.violations()).toEqual([]);
  expect(await a.value("select (select count(*) from sluice.task) - (select count(*) from sluice.done)")).toBe("0");
}
