import fc from "fast-check";
import { expect } from "vitest";
import type { Store } from "./model-store.js";
import type { Kind, Limit, Place, Stream, Task, Total } from "./model-terms.js";
import type { Model } from "./model.js";

type Act = (model: Model, store: Store) => Promise<void>;

/** What to do to both. */
export interface Command {
  readonly run: Act;
  /** Its readable name, for the report of a failed script. */
  [fc.toStringMethod](): string;
}

const named = (words: string, run: Act): Command => ({ run, [fc.toStringMethod]: () => words });

/** One step: settles the picked running tasks, and claims n more. */
export async function step(
  model: Model,
  store: Store,
  n: number,
  picks: readonly boolean[] = [],
): Promise<readonly number[]> {
  const done = model.running().filter((_, i) => picks[i] === true);
  const told = store.explains && done.length === 0 && n > 0 ? await store.explain() : null;
  for (const t of told === null ? [] : model.tasks)
    if (t.state === "ready" && model.full(t))
      expect(told!.get(t.id)![0], `task ${t.id} stands at a total`).toMatchObject({
        kind: "limit",
      });
  const got = await store.step(done, n);
  expect(got).toEqual(model.step(done, n, got));
  if (told !== null) toldRight(model, told, got, n);
  return got;
}

/** Explain reported every claimed task as next, and every task it reports as next is claimed if there is room. */
function toldRight(model: Model, told: Awaited<ReturnType<Store["explain"]>>, got: readonly number[], n: number): void {
  for (const id of got) expect(told.get(id), `task ${id} was taken`).toMatchObject([{ kind: "next" }]);
  // Where tasks pass several totals, a claim may leave room unused: see model-claims.
  const ready = model.tasks.filter((t) => t.state === "ready" || got.includes(t.id));
  const exact = got.length < n && ready.every((t) => model.gates(t).length <= 1);
  for (const [id, reasons] of told) {
    expect(reasons, `task ${id} has a reason`).not.toEqual([]);
    const t = model.tasks.find((x) => x.id === id)!;
    // A keeper moves due tasks and tasks that are served again before a claim finds them. A task that joins a
    // lane only with this claim, or behind others that do, may find its slots taken.
    const moved = t.state === "scheduled" || t.state === "parked";
    const joins = (x: Task): boolean => x.order !== null && x.tenant !== null;
    const before = model.tasks.some((x) => x.tenant === t.tenant && joins(x) && (told.has(x.id) || got.includes(x.id)));
    const stands = !moved && !model.full(t) && !before;
    if (exact && stands && !got.includes(id))
      expect(reasons, `task ${id} was left`).not.toEqual([{ kind: "next", before: 0 }]);
  }
}

/** One of a list, whatever its length turns out to be. */
const one = <T>(list: readonly T[], at: number): T | undefined => list[at % (list.length || 1)];

const often = (weight: number, arbitrary: fc.Arbitrary<Command>) => ({ weight, arbitrary });
const at = fc.nat({ max: 1_000 });
const stream = fc.constantFrom<Stream[]>("bounded", "free");
const name = fc.constantFrom(null, "x", "y");
const place: fc.Arbitrary<Place> = fc.record({
  stream,
  priority: fc.integer({ min: -1, max: 2 }),
  order: name,
  blocks: fc.boolean(),
  tenant: name,
  totals: fc.constantFrom<(readonly Total[])[]>([], [], ["mail"], ["bulk"], ["mail", "bulk"]),
  attempts: fc.integer({ min: 1, max: 3 }),
  later: fc.constantFrom(false, false, false, true),
  key: fc.constantFrom(null, null, null, null, "k"),
});

const enqueue = fc.array(place, { minLength: 1, maxLength: 4 }).map((places): Command =>
  named(`enqueue ${JSON.stringify(places)}`, async (model, store) => {
    for (const p of places) {
      model.enqueue(p);
      await store.enqueue(p);
    }
  }),
);

const steps = fc
  .tuple(fc.nat({ max: 6 }), fc.array(fc.boolean(), { maxLength: 8 }))
  .map(([n, picks]): Command =>
    named(
      `step ${n}, settles ${picks.map(Number).join("")}`,
      async (model, store) => void (await step(model, store, n, picks)),
    ),
  );

const settles = fc
  .tuple(
    fc.constantFrom<Kind[]>("retry", "fail", "cancel", "snooze", "release"),
    at,
    fc.boolean(),
    fc.constantFrom(false, false, true),
  )
  .map(([kind, i, later, stopped]): Command =>
    named(`${stopped ? "cancel, then " : ""}settle ${kind} ${i}${later ? " later" : ""}`, async (model, store) => {
      if (model.running().length === 0) await step(model, store, 3);
      const t = one(model.running(), i);
      if (t === undefined) return;
      if (stopped) await store.cancel(t);
      if (stopped) model.cancel(t);
      await store.settle(t, kind, later);
      model.settle(t, kind, later);
      if (kind === "release") model.keep();
    }),
  );

const transactions = fc.tuple(at, fc.boolean()).map(([i, commits]): Command =>
  named(`complete ${i} in a transaction that ${commits ? "commits" : "rolls back"}`, async (model, store) => {
    const t = one(model.running(), i);
    if (t === undefined) return;
    await store.complete(t, commits);
    if (commits) model.commit(t);
  }),
);

const lostReply = fc.integer({ min: 1, max: 4 }).map((n): Command =>
  named(`step ${n}, its reply is lost`, async (model, store) => {
    const known = model.running();
    const got = await step(model, store, n);
    await store.releaseUnknown(known);
    model.handBack(model.running().filter((t) => got.includes(t.id)));
  }),
);

const operations = fc
  .tuple(fc.constantFrom("cancel" as const, "retry" as const, "unblock" as const), at)
  .map(([verb, i]): Command =>
    named(`${verb} ${i}`, async (model, store) => {
      const t = one(model.tasks, i);
      if (t === undefined) return;
      await store[verb](t);
      model[verb](t);
    }),
  );

const sets = fc
  .tuple(fc.constantFrom<Limit[]>("tenant", "mail", "bulk", "bounded"), fc.constantFrom(null, 0, 1, 2, 3, 4))
  .map(([limit, n]): Command =>
    named(`set ${limit} ${n}`, async (model, store) => {
      await store.set(limit, n);
      model.set(limit, n);
    }),
  );

const deploys = fc.constantFrom(null, 1, 2).map((n): Command =>
  named(`a deploy gives the free type ${n === null ? "no limit" : `a limit of ${n}`}`, async (model, store) => {
    await store.declare("free", n);
    model.declare("free", n);
  }),
);

const fills = fc.integer({ min: 1, max: 3 }).map((n): Command =>
  named(`the group comes with a number, ${n}`, async (model, store) => {
    await store.fill(n);
    model.fill(n);
  }),
);

const dues = fc.boolean().map((hour): Command =>
  named(`due${hour ? " an hour later" : ""}`, async (model, store) => {
    await store.due(hour);
    model.due(hour);
  }),
);

const ticks = fc.constantFrom("new" as const, "new" as const, "again" as const, "stale" as const).map((how): Command =>
  named(`a tick: ${how}`, async (model, store) => {
    await store.tick(how);
    model.tick(how);
  }),
);

/** The worker dies this many times, with its tasks and those it could claim. */
async function crash(model: Model, store: Store, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    if (i > 0) await step(model, store, 3);
    await store.crash();
    model.crash();
  }
}

const crashes = fc
  .constantFrom(1, 1, 2, 3)
  .map((times): Command => named(`crash ${times} times`, (model, store) => crash(model, store, times)));

/** A task in flight at three crashes is claimed alone, by a worker that first finishes its other tasks. */
const suspects = fc.boolean().map((dies): Command =>
  named(`claim a suspect${dies ? ", and crash" : ""}`, async (model, store) => {
    if (!model.tasks.some((t) => t.state === "suspect")) await crash(model, store, 4);
    const all = model.running().map(() => true);
    await step(model, store, 0, all);
    expect(await store.suspect()).toEqual(model.suspect());
    if (dies) await crash(model, store, 1);
  }),
);

const serves = fc
  .constantFrom<Stream[][]>(["bounded", "free"], ["bounded", "free"], ["bounded"], ["free"])
  .map((streams): Command =>
    named(`another worker, that serves ${streams.join(" and ")}`, async (model, store) => {
      await store.serve(streams);
      model.serve(streams);
    }),
  );

const pauses = fc.boolean().map((paused): Command =>
  named(paused ? "pause" : "resume", async (model, store) => {
    await store.pause(paused);
    model.pause(paused);
  }),
);

/** Everything that can be asked of the store. */
export const command: fc.Arbitrary<Command> = fc.oneof(
  often(16, enqueue),
  often(20, steps),
  often(10, settles),
  often(8, operations),
  often(6, sets),
  often(4, dues),
  often(3, transactions),
  often(3, lostReply),
  often(3, serves),
  often(3, crashes),
  often(3, suspects),
  often(2, deploys),
  often(2, ticks),
  often(2, pauses),
  often(1, fills),
);
