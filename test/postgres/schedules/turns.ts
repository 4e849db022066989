import { idsOf, type Held } from "../../support/sql.js";
import { schedule } from "./schedule.js";

/** Two keys with six older tasks each share a total of one slot, then a third key comes. */
export const newKey = (kind: "limit" | "order") =>
  schedule({ before: 2 }, async (scene) => {
    const [a] = await scene.sessions(1);
    const pool = await a.limit("pool", { total: 1 });
    const tenant = await a.limit("tenant", { perKey: 1 });
    const limits = kind === "limit" ? [pool, tenant] : [pool];
    const stream = await a.type("t", { limits });
    const worker = await a.register([stream]);
    const add = (key: string, n: number) =>
      a.enqueue(stream, { n, limits, ...(kind === "limit" ? { keys: [key] } : { order: key }) });
    await add("a", 6);
    await add("b", 6);
    let held = await a.claim(worker, 1);
    const [newest] = await add("c", 1);
    let before = 0;
    for (; before < 12; before++) {
      held = (await a.step(worker, 1, held)).held;
      if (idsOf(held)[0] === newest) break;
    }
    return { before };
  });

/** Tasks of two types are cancelled by a transaction that stays open; a third type has one too. */
const inHand = (before: string) =>
  schedule({ claimed: [3] }, async (scene) => {
    const [a, b] = await scene.sessions(2);
    const streams = [await a.type("one"), await a.type("two"), await a.type("three")];
    const worker = await a.register(streams);
    for (const stream of streams) await a.enqueue(stream);
    await b.begin();
    await b.script(before);
    await b.cancel([1, 2]);
    // Another transaction that begins later and commits.
    await a.enqueue(streams[2]!, { priority: -1 });
    const claimed = idsOf(await a.claim(worker, 1));
    await b.rollback();
    return { claimed };
  });

export const headsInHand = inHand("select");
export const headsInHandOfASavepoint = inHand("savepoint s");

/** The better task of another worker is being cancelled by a transaction that stays open. */
export const rivalInHand = schedule({ claimed: [2] }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const limits = [await a.limit("shared", { total: 1 })];
  const plain = await a.type("plain", { limits });
  const urgent = await a.type("urgent", { limits });
  const mine = await a.register([plain]);
  await a.register([urgent]);
  await a.enqueue(plain, { n: 2, limits });
  const first = await a.claim(mine, 1);
  await a.enqueue(urgent, { limits, priority: 10 });
  await b.begin();
  await b.cancel([3]);
  const { held } = await a.step(mine, 1, first);
  await b.rollback();
  return { claimed: idsOf(held) };
});

/**
 * A total of two slots, both used by tasks of one type. A better task of another kind waits: one that needs another
 * total too, or one of a type whose own limit it is.
 */
export const sharedTotal = (kind: "set" | "concurrency") =>
  schedule({ kept: [] as number[], given: [5], rest: [3] }, async (scene) => {
    const [a] = await scene.sessions(1);
    const total = await a.limit("urgent", { total: 2 });
    const other = await a.limit("other", { total: 9 });
    const plain = await a.type("plain", { limits: [total] });
    const set = kind === "set";
    const limits = set ? [total, other] : [];
    const urgent = await a.type("urgent", set ? { limits } : { concurrency: 2 });
    const mine = await a.register([plain]);
    const theirs = await a.register([urgent]);
    await a.enqueue(plain, { n: 4, limits: [total] });
    const [one, two] = (await a.claim(mine, 2)) as [Held, Held];
    await a.enqueue(urgent, { priority: 100, ...(set && { limits }) });
    const kept = idsOf((await a.step(mine, 1, [one])).held);
    const given = idsOf(await a.claim(theirs, 1));
    const rest = idsOf((await a.step(mine, 1, [two])).held);
    return { kept, given, rest };
  });
