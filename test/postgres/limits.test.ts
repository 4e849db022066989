import { describe, expect, test } from "vitest";
import { idsOf, refusal, Scene, type Held, type Session, type TestWorker } from "../support/sql.js";
import { changedForManyKeys, loweredOneOfTwo, loweredPerKey, raisedWithWaiters } from "./schedules/numbers.js";
import { observe, wanted } from "./schedules/schedule.js";

const UNLIMITED = 2_147_483_647;
const parts = ["total", "perKey"] as const;

/** A database for one test. At its end no slot may be missing and no task forgotten. */
async function on(use: (a: Session, scene: Scene) => Promise<void>): Promise<void> {
  const scene = await Scene.open();
  try {
    const [a] = await scene.sessions(1);
    await use(a, scene);
    expect(await scene.violations()).toEqual([]);
  } finally {
    await scene.close();
  }
}

/** Claims until there is nothing more to claim: a task passes one lane of a level at a time. */
async function claimAll(a: Session, worker: TestWorker): Promise<Held[]> {
  const all: Held[] = [];
  for (let empty = 0; empty < 4;) {
    const held = await a.claim(worker, 50);
    all.push(...held);
    empty = held.length === 0 ? empty + 1 : 0;
  }
  return all;
}

/** One limit, one type, and n tasks that pass it under one key. */
async function stage(a: Session, shape: { total?: number; perKey?: number }, n: number) {
  const limits = [await a.limit("mail", shape)];
  const stream = await a.type("t", { limits });
  const worker = await a.register([stream]);
  const keys = shape.perKey === undefined ? {} : { keys: ["x"] };
  await a.enqueue(stream, { n, limits, ...keys });
  return { limits, stream, worker };
}

describe.each(parts)("the number of a limit, %s:", (part) => {
  test("a limit of 0 admits nothing, and a number admits exactly that many", () =>
    on(async (a) => {
      const { worker } = await stage(a, { [part]: 0 }, 20);
      expect(await claimAll(a, worker)).toHaveLength(0);
      await a.setLimit("mail", { [part]: 3 });
      expect(await claimAll(a, worker)).toHaveLength(3);
    }));

  test("a limit lowered to 0 lets running tasks finish, starts none, and can be raised again", () =>
    on(async (a) => {
      const { worker } = await stage(a, { [part]: 2 }, 20);
      const held = await claimAll(a, worker);
      await a.setLimit("mail", { [part]: 0 });
      expect((await a.step(worker, 50, held)).held).toHaveLength(0);
      expect(await claimAll(a, worker)).toHaveLength(0);
      await a.setLimit("mail", { [part]: 5 });
      expect(await claimAll(a, worker)).toHaveLength(5);
    }));

  test("a raised limit admits exactly the difference of its waiting tasks", async () => {
    const schedule = raisedWithWaiters(part);
    expect(await observe(schedule)).toEqual(wanted(schedule));
  });

  test("a lifted limit admits everything, and a restored one nothing until its use is below it", () =>
    on(async (a) => {
      const { worker } = await stage(a, { [part]: 2 }, 12);
      await a.setLimit("mail", { [part]: UNLIMITED });
      const held = await claimAll(a, worker);
      expect(held).toHaveLength(12);
      await a.setLimit("mail", { [part]: -1 });
      await a.enqueue(worker.streams[0]!, {
        n: 5,
        limits: [1],
        ...(part === "perKey" && { keys: ["x"] }),
      });
      expect((await a.step(worker, 50, held.splice(0, 10))).held).toHaveLength(0);
      expect((await a.step(worker, 50, held.splice(0, 1))).held).toHaveLength(1);
    }));

  test("a limit moved 10 -> 2 -> 10 -> 0 -> 5 under a load of settles is never exceeded", () =>
    on(async (a, scene) => {
      const { worker } = await stage(a, { [part]: 10 }, 120);
      let held = await a.claim(worker, 50);
      for (const number of [10, 2, 10, 0, 5]) {
        await a.setLimit("mail", { [part]: number });
        for (let round = 0; round < 4; round++) {
          const before = held.length;
          const { held: more } = await a.step(worker, 50, held.splice(0, 3));
          held = [...held, ...more];
          const running = (await scene.running()).length;
          expect(running).toBeLessThanOrEqual(Math.max(number, before - 3));
        }
        // What ran above the number has gone by now, or another round would be owed.
        while (held.length > number) held.splice(0, (await drain(a, worker, held, number)).length);
        await a.keep();
        held.push(...(await claimAll(a, worker)));
        expect((await scene.running()).length).toBe(number);
      }
    }));
});

/** Completes one task, which must bring no other in its place. Returns what was completed. */
async function drain(a: Session, worker: TestWorker, held: readonly Held[], number: number) {
  const { held: more } = await a.step(worker, 50, [held[0]!]);
  expect(more.length === 0 || held.length - 1 < number).toBe(true);
  return [held[0]!];
}

test("a lowered limit per key admits nothing until its use is below it", async () => {
  expect(await observe(loweredPerKey)).toEqual(wanted(loweredPerKey));
});

test("a limit per key counts each key separately", () =>
  on(async (a) => {
    const limits = [await a.limit("tenant", { perKey: 2 })];
    const stream = await a.type("t", { limits });
    const worker = await a.register([stream]);
    for (const key of ["a", "b", "c"]) await a.enqueue(stream, { n: 5, limits, keys: [key] });
    const held = await claimAll(a, worker);
    expect(idsOf(held).toSorted((x, y) => x - y)).toEqual([1, 2, 6, 7, 11, 12]);
    await a.setLimit("tenant", { perKey: 1 });
    expect((await a.step(worker, 50, held.slice(0, 2))).held).toHaveLength(1);
  }));

test("a limit with a total and a number per key enforces both, and each can be changed alone", () =>
  on(async (a, scene) => {
    const limits = [await a.limit("mail", { total: 3, perKey: 2 })];
    const stream = await a.type("t", { limits });
    const worker = await a.register([stream]);
    for (const key of ["a", "b", "c"]) await a.enqueue(stream, { n: 4, limits, keys: [key] });
    expect(idsOf(await claimAll(a, worker))).toEqual([1, 2, 5]);
    await a.setLimit("mail", { total: 10 });
    expect(idsOf(await claimAll(a, worker))).toEqual([6, 9, 10]);
    await a.setLimit("mail", { perKey: 3 });
    expect(idsOf(await claimAll(a, worker))).toEqual([3, 7, 11]);
    expect(await scene.running()).toHaveLength(9);
  }));

test("a task passes its order key, a key, two totals and its type's own limit", () =>
  on(async (a, scene) => {
    const limits = [
      await a.limit("tenant", { perKey: 2 }),
      await a.limit("region", { total: 3 }),
      await a.limit("mail", { total: 5 }),
    ];
    const stream = await a.type("t", { limits, concurrency: 4 });
    const worker = await a.register([stream]);
    for (let i = 0; i < 24; i++)
      await a.enqueue(stream, { limits, keys: [`tenant-${i % 4}`], order: `order-${i % 12}` });
    const held = await claimAll(a, worker);
    const binding = [held.length];
    for (const [name, shape] of [
      ["region", { total: 20 }],
      ["t", { total: 20 }],
      ["mail", { total: 20 }],
      ["tenant", { perKey: 20 }],
    ] as const) {
      await a.setLimit(name, shape);
      held.push(...(await claimAll(a, worker)));
      binding.push(held.length);
    }
    // Each in turn is the one that binds: region, concurrency, mail, tenant (4 x 2), the order keys.
    expect(binding).toEqual([3, 4, 5, 8, 12]);
    expect((await scene.running()).length).toBe(12);
    const started = idsOf(held);
    for (let done = held.splice(0); done.length > 0; done = await claimAll(a, worker)) {
      started.push(...idsOf((await a.step(worker, 0, done)).held));
      started.push(...idsOf(done).filter((id) => !started.includes(id)));
    }
    expect(started).toHaveLength(24);
    for (let i = 1; i <= 12; i++) expect(started.indexOf(i)).toBeLessThan(started.indexOf(i + 12));
  }));

test("waiters of thousands of keys are woken when their limit is raised", async () => {
  const raised = changedForManyKeys(1, 2);
  expect(await observe(raised)).toEqual(wanted(raised));
});

test("ready tasks above a lowered limit of thousands of keys return to their lanes", async () => {
  const lowered = changedForManyKeys(2, 1);
  expect(await observe(lowered)).toEqual(wanted(lowered));
});

test("a ready task with two limits per key returns to the lowered one, whichever it passed first", async () => {
  expect(await observe(loweredOneOfTwo)).toEqual(wanted(loweredOneOfTwo));
});

/** Rows that the work reads and changes in a table. */
async function touched(
  a: Session,
  table: string,
  work: () => Promise<unknown>,
): Promise<{ read: number; changed: number }> {
  const text = `select seq_tup_read + coalesce(idx_tup_fetch, 0) as read, n_tup_upd + n_tup_ins + n_tup_del as changed
    from pg_stat_xact_user_tables where schemaname = 'sluice' and relname = $1`;
  const counts = async (): Promise<number[]> =>
    Object.values((await a.rows<{ read: string; changed: string }>(text, [table]))[0]!).map(Number);
  await a.begin();
  const before = await counts();
  await work();
  const after = await counts();
  await a.rollback();
  return { read: after[0]! - before[0]!, changed: after[1]! - before[1]! };
}

test("a change of a limit per key reads a bounded number of lanes while it holds the barrier", () =>
  on(async (a) => {
    const limit = await a.limit("mail", { perKey: 5 });
    await a.rows(
      "insert into sluice.lane select (2::bigint << 60) + i, $1::int, null, 3 from generate_series(1, 20000) i",
      [limit],
    );
    for (const perKey of [7, 2]) {
      const lanes = await touched(a, "lane", () => a.setLimit("mail", { perKey }));
      expect(lanes.changed).toBe(0);
      expect(lanes.read).toBeLessThan(2_000);
    }
    const removed = await touched(a, "lane", () => a.value("select sluice.remove_limit('mail')"));
    expect(removed.changed).toBe(0);
    expect(removed.read).toBeLessThan(2_000);
    await a.rows("delete from sluice.lane");
  }));

test("a keeper finds the holders of a lane above its number without reading the ready tasks", () =>
  on(async (a) => {
    const limits = [await a.limit("mail", { perKey: 5 })];
    const stream = await a.type("t", { limits });
    const worker = await a.register([stream]);
    await a.enqueue(stream, { n: 20_000 });
    await a.enqueue(stream, { n: 5, limits, keys: ["x"], priority: 1 });
    await a.admit();
    const held = await a.claim(worker, 3);
    await a.setLimit("mail", { perKey: 1 });
    let shed = 0;
    const reads = await touched(a, "ready", async () => (shed = await a.value("select shed from sluice.shed()")));
    expect(shed).toBe(2);
    expect(reads.read).toBeLessThan(50);
    // Those that run keep the lane above its number: nothing more is to be found.
    await a.keep();
    expect((await touched(a, "ready", () => a.value("select shed from sluice.shed()"))).read).toBeLessThan(50);
    expect(held).toHaveLength(3);
  }));

test("one worker at a time searches for tasks above a lowered number", () =>
  on(async (a, scene) => {
    const [b] = await scene.sessions(1);
    const limits = [await a.limit("mail", { perKey: 5 })];
    const stream = await a.type("t", { limits });
    await a.register([stream]);
    await a.enqueue(stream, { n: 5, limits, keys: ["x"] });
    await a.admit();
    await a.setLimit("mail", { perKey: 1 });
    await a.begin();
    expect(await a.value("select shed from sluice.shed()")).toBe(4);
    expect(await b.value("select shed from sluice.shed()")).toBe(0);
    await a.rollback();
    expect(await b.value("select shed from sluice.shed()")).toBe(4);
    await b.admit();
  }));

test("ready tasks above a lowered limit return to their lanes, the last first", () =>
  on(async (a) => {
    const { worker, stream, limits } = await stage(a, { perKey: 4 }, 3);
    await a.enqueue(stream, { priority: 5, limits, keys: ["x"] });
    await a.admit();
    await a.setLimit("mail", { perKey: 2 });
    expect(await a.claim(worker, 5)).toEqual([]);
    await a.keep();
    const states = await a.rows("select state from sluice.task_state order by id");
    expect(states.map((r) => r["state"])).toEqual(["ready", "waiting", "waiting", "ready"]);
    expect(idsOf(await claimAll(a, worker))).toEqual([1, 4]);
  }));

test("a task that returns to a limit releases the slots behind it and keeps those before it", () =>
  on(async (a, scene) => {
    const limits = [await a.limit("tenant", { perKey: 2 }), await a.limit("region", { total: 2 })];
    const last = await a.limit("mail", { total: 9 });
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    const task = { limits: [...limits, last], keys: ["x"] };
    await a.enqueue(stream, { ...task, order: "k1" });
    await a.enqueue(stream, { ...task, order: "k2" });
    await a.admit();
    await a.setLimit("tenant", { perKey: 1 });
    await a.keep();
    // Another tenant finds the slot of the region that task 2 had.
    await a.enqueue(stream, { n: 2, limits: [...limits, last], keys: ["y"] });
    expect(idsOf(await claimAll(a, worker))).toEqual([1, 3]);
    expect(await scene.state(2)).toBe("waiting");
    // Its order key it keeps, or the next of that key would overtake it.
    expect(await a.value("select held from sluice.waiting where id = 2")).toBe(1);
  }));

describe("precedence of declared and set numbers:", () => {
  const numberOf = (a: Session): Promise<number> =>
    a.value("select cap from sluice.gate where id = (select id from sluice.limits where name = 'mail')");

  test("the first declaration counts until a sync, and an operator's number through every deploy", () =>
    on(async (a) => {
      const seen: number[] = [];
      const look = async (): Promise<void> => void seen.push(await numberOf(a));
      await a.limit("mail", { total: 5 });
      await look();
      await a.limit("mail", { total: 9 });
      await look();
      await a.limit("mail", { total: 9 }, true);
      await look();
      await a.setLimit("mail", { total: 2 });
      await look();
      await a.limit("mail", { total: 7 }, true);
      await look();
      await a.setLimit("mail", { total: -1 });
      await look();
      expect(seen).toEqual([5, 5, 9, 2, 2, 7]);
    }));

  test("a synced declaration admits waiting tasks", () =>
    on(async (a) => {
      const { worker } = await stage(a, { perKey: 1 }, 9);
      expect(await claimAll(a, worker)).toHaveLength(1);
      await a.limit("mail", { perKey: 4 }, true);
      expect(await claimAll(a, worker)).toHaveLength(3);
    }));

  test("a part of a limit that is not mentioned is unchanged", () =>
    on(async (a) => {
      await a.limit("mail", { total: 5, perKey: 2 });
      await a.setLimit("mail", { total: 1, perKey: 1 });
      await a.setLimit("mail", { total: 3 });
      const [row] = await a.rows("select total_override, per_key_override from sluice.limits");
      expect(row).toEqual({ total_override: 3, per_key_override: 1 });
    }));

  test("a type's own limit follows the same rules, and a synced deploy can remove it", () =>
    on(async (a) => {
      const stream = await a.type("t", { concurrency: 2 });
      const worker = await a.register([stream]);
      await a.enqueue(stream, { n: 20 });
      const held = await claimAll(a, worker);
      expect(held).toHaveLength(2);
      await a.type("t", { concurrency: 5 });
      expect(await claimAll(a, worker)).toHaveLength(0);
      await a.type("t", { concurrency: 5, sync: true });
      expect(await claimAll(a, worker)).toHaveLength(3);
      await a.type("t", {});
      expect(await claimAll(a, worker)).toHaveLength(0);
      await a.type("t", { sync: true });
      expect(await claimAll(a, worker)).toHaveLength(15);
      await a.step(worker, 0, held);
    }));

  test("a number given with a group is used only if none is set", () =>
    on(async (a) => {
      const id = await a.limit("mail", { total: UNLIMITED });
      await a.value("select sluice.fill_limit($1, 4)", [id]);
      expect(await numberOf(a)).toBe(4);
      await a.value("select sluice.fill_limit($1, 9)", [id]);
      expect(await numberOf(a)).toBe(4);
    }));
});

describe("the shape of a limit:", () => {
  test.each([
    [{ total: 5 }, { perKey: 1 }],
    [{ perKey: 5 }, { total: 1 }],
  ])("a limit declared as %o refuses %o", (first, second) =>
    on(async (a) => {
      await a.limit("mail", first);
      expect(await refusal(a.limit("mail", second))).toBe("limit_shape");
      expect(await refusal(a.limit("mail", second, true))).toBe("limit_shape");
      expect(await refusal(a.limit("mail", { ...first, ...second }))).toBe("limit_shape");
      expect(await refusal(a.setLimit("mail", second))).toBe("limit_shape");
      expect(await refusal(a.limit("mail", first))).toBe("accepted");
    }),
  );

  test("a limit per key cannot become a type's own limit", () =>
    on(async (a) => {
      await a.limit("t", { perKey: 5 });
      expect(await refusal(a.type("t", { concurrency: 1 }))).toBe("limit_shape");
    }));

  test("a limit that is not declared cannot be set", () =>
    on(async (a) => {
      expect(await refusal(a.setLimit("nothing", { total: 1 }))).toBe("unknown_limit");
    }));
});

test("a total has one counter, whether a task uses it alone or beside another", () =>
  on(async (a) => {
    const mail = await a.limit("mail", { total: 2 });
    const other = await a.limit("other", { total: 5 });
    const alone = await a.type("alone", { limits: [mail] });
    const both = await a.type("both", { limits: [mail, other] });
    await a.enqueue(alone, { n: 5, limits: [mail] });
    await a.enqueue(both, { n: 5, limits: [mail, other] });
    const one = await a.register([alone]);
    const two = await a.register([both]);
    const held = await a.claim(one, 1);
    const more = await claimAll(a, two);
    expect([...held, ...more, ...(await claimAll(a, one))]).toHaveLength(2);
    await a.step(one, 0, held);
    await a.step(two, 0, more);
    await a.setLimit("mail", { total: 8 });
    await a.setLimit("other", { total: 3 });
    expect(await claimAll(a, two)).toHaveLength(3);
    expect(await claimAll(a, one)).toHaveLength(4);
  }));

test("a limit of one type that another type uses too follows its lowered number", () =>
  on(async (a) => {
    const first = await a.type("first", { concurrency: 4 });
    const own = await a.value<number>("select id from sluice.limits where name = 'first'");
    const second = await a.type("second", { limits: [own] });
    await a.enqueue(first, { n: 10 });
    await a.enqueue(second, { n: 10, limits: [own] });
    const worker = await a.register([first, second]);
    const held = await a.claim(worker, 10);
    expect(held).toHaveLength(4);
    await a.setLimit("first", { total: 2 });
    expect((await a.step(worker, 10, held)).held).toHaveLength(2);
  }));

test("the best task of the last gate gets its turn in a stream with more gates than a claim examines", () =>
  on(async (a) => {
    const limits: number[] = [];
    for (let i = 0; i < 30; i++) limits.push(await a.limit(`group ${i}`, { total: 1 }));
    const stream = await a.type("t", { limits: [] });
    for (const limit of limits.slice(0, -1)) await a.enqueue(stream, { n: 100, limits: [limit] });
    const [best] = await a.enqueue(stream, { limits: limits.slice(-1), priority: 100 });
    const worker = await a.register([stream]);
    let held: Held[] = [];
    for (let i = 0; i < 200 && !idsOf(held).includes(best!); i++) {
      held = (await a.step(worker, 10, held)).held;
    }
    expect(idsOf(held)).toContain(best);
  }));
