import { idsOf, type Scene, type Session, type TestWorker } from "../../support/sql.js";
import { schedule } from "./schedule.js";

interface Stage {
  readonly a: Session;
  readonly mine: TestWorker;
  readonly theirs: TestWorker;
}

/** One slot for two types, each served by a worker of its own; the other's tasks are the better ones. */
async function stage(scene: Scene): Promise<Stage> {
  const [a] = await scene.sessions(1);
  const limits = [await a.limit("shared", { total: 1 })];
  const plain = await a.type("plain", { limits });
  const urgent = await a.type("urgent", { limits, queue: "fast" });
  const mine = await a.register([plain]);
  const theirs = await a.register([urgent]);
  await a.enqueue(plain, { n: 5, limits });
  const first = await a.claim(mine, 1);
  await a.enqueue(urgent, { n: 2, limits, priority: 10 });
  await a.step(mine, 0, first);
  return { a, mine, theirs };
}

/** Attack 11: the slot goes where the better task is, and comes back when there is none. */
export const betterElsewhere = schedule({ kept: [] as number[], given: [6, 7], back: [2] }, async (scene) => {
  const { a, mine, theirs } = await stage(scene);
  const kept = idsOf(await a.claim(mine, 1));
  let held = await a.claim(theirs, 1);
  const given = idsOf(held);
  held = (await a.step(theirs, 1, held)).held;
  given.push(...idsOf(held));
  await a.step(theirs, 1, held);
  return { kept, given, back: idsOf(await a.claim(mine, 1)) };
});

/** Attack 11, re-use: a worker that settles and claims in one step gives its slot away too. */
export const betterElsewhereOnReuse = schedule({ reused: [] as number[], given: [6] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const limits = [await a.limit("shared", { total: 1 })];
  const plain = await a.type("plain", { limits });
  const urgent = await a.type("urgent", { limits, queue: "fast" });
  const mine = await a.register([plain]);
  const theirs = await a.register([urgent]);
  await a.enqueue(plain, { n: 5, limits });
  const first = await a.claim(mine, 1);
  await a.enqueue(urgent, { n: 2, limits, priority: 10 });
  const { held } = await a.step(mine, 1, first);
  return { reused: idsOf(held), given: idsOf(await a.claim(theirs, 1)) };
});

export type Absence = "gone" | "expired" | "full" | "draining" | "paused";

/** Attack 11: no worker can claim the better task, so the slot must not be left idle. */
export const nobodyForTheBetter = (absence: Absence) =>
  schedule({ claimed: [2] }, async (scene) => {
    const { a, mine, theirs } = await stage(scene);
    if (absence === "gone") await a.value("select sluice.retire($1)", [theirs.id]);
    if (absence === "expired")
      await a.rows("update sluice.worker set expires_at = sluice.clock() - interval '1 s' where id = $1", [theirs.id]);
    if (absence === "full") await a.beat(theirs, 0);
    if (absence === "draining") await a.beat(theirs, 5, true);
    if (absence === "paused") await a.value("select sluice.pause_queue('fast', true)");
    return { claimed: idsOf(await a.claim(mine, 1)) };
  });

/** Attack 11: equal priority, tasks of both types in turn: the slot follows their age. */
export const turnsByAge = schedule({ started: [1, 2, 3, 4, 5, 6] }, async (scene) => {
  const [a] = await scene.sessions(1);
  const limits = [await a.limit("shared", { total: 1 })];
  const streams = [await a.type("one", { limits }), await a.type("two", { limits })];
  const workers = await Promise.all(streams.map((s) => a.register([s])));
  for (let i = 0; i < 6; i++) await a.enqueue(streams[i % 2]!, { limits });
  const started: number[] = [];
  for (let round = 0; round < 12; round++) {
    const worker = workers[round % 2]!;
    const held = await a.claim(worker, 1);
    started.push(...idsOf(held));
    await a.step(worker, 0, held);
  }
  return { started };
});
