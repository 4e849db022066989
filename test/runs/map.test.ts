import { describe, expect, test } from "vitest";
import { fixed, limit, task, type, workflow, type TaskContext } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { violations } from "../support/audit.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";

const once = { attempts: 1 };
const parent = task("parent", { input: type<number[]>(), retry: { backoff: fixed(10) } });
const item = task("item", { input: type<number>(), output: type<number>(), retry: once });
const quick = { pollIntervalMs: 20 };

/** The states of the fan-outs of handlers, oldest first. */
async function maps({ sql }: Scene): Promise<string[]> {
  const { rows } = await sql.query<{ state: string }>(
    "select state from sluice.workflow_status where parent is not null order by id",
  );
  return rows.map((r) => r.state);
}

const sound = async (s: Scene): Promise<void> => expect(await violations(s.sql)).toEqual([]);

test("ctx.map returns the results of its items in order, and the handler uses one attempt", async () => {
  const s = await scene();
  const runs: number[] = [];
  const done: number[] = [];
  let peak = 0;
  let running = 0;
  await s.worker({
    ...quick,
    handlers: [
      parent.handle(async (numbers, ctx) => {
        runs.push(ctx.attempt);
        return ctx.map("double", numbers, item, { window: 3 });
      }),
      item.handle(async (n) => {
        peak = Math.max(peak, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        done.push(n);
        return n * 2;
      }),
    ],
  });
  const numbers = Array.from({ length: 20 }, (_, i) => i);
  const handle = await s.sluice.enqueue(parent, numbers);
  expect(await handle.result({ timeoutMs: 20_000 })).toEqual(numbers.map((n) => n * 2));
  expect(runs).toEqual([1, 1]);
  expect(done.toSorted((a, b) => a - b)).toEqual(numbers);
  expect(peak).toBeLessThanOrEqual(3);
  expect(await maps(s)).toEqual(["succeeded"]);
  await sound(s);
});

test("a handler that waits for its map holds no slot, unless it uses hold: true", async () => {
  const s = await scene();
  const open = signal();
  const held = task("held", { concurrency: 1, input: type<boolean>() });
  const order: string[] = [];
  await s.worker({
    ...quick,
    handlers: [
      held.handle(async (hold, ctx) => {
        order.push(`begins ${hold}`);
        await ctx.map("m", [1], item, { hold });
        order.push(`ends ${hold}`);
      }),
      item.handle(async () => {
        await open.promise;
        return 1;
      }),
    ],
  });
  const first = await s.sluice.enqueue(held, false);
  await until("the first to sleep", async () => (await first.status())?.state === "waiting");
  expect((await s.sluice.counts()).waiting).toBe(1);
  const second = await s.sluice.enqueue(held, true);
  await until("the second to run beside it", () => order.includes("begins true"));
  const third = await s.sluice.enqueue(held, false);
  await until("both maps to be made", async () => (await maps(s)).length === 2);
  expect(order).toEqual(["begins false", "begins true"]);
  expect((await second.status())?.state).toBe("running");
  expect((await third.status())?.state).toBe("ready");
  open.resolve();
  for (const handle of [first, second, third]) await handle.result({ timeoutMs: 20_000 });
  expect(order.filter((o) => o === "begins true").length).toBe(1);
  await sound(s);
});

describe("failed items of a map", () => {
  async function policy(
    onError: "failFast" | "finish" | "collect",
    catching = false,
  ): Promise<{ outcome: unknown; attempts: number[]; ran: number; s: Scene }> {
    const s = await scene();
    const attempts: number[] = [];
    let ran = 0;
    await s.worker({
      ...quick,
      handlers: [
        parent.handle(async (numbers, ctx: TaskContext) => {
          attempts.push(ctx.attempt);
          try {
            return await ctx.map("m", numbers, item, { window: 1, onError });
          } catch (e) {
            if (!catching) throw e;
            return `caught ${(e as { code?: string }).code}`;
          }
        }),
        item.handle((n) => {
          ran++;
          if (n === 2) throw new Error("no two");
          return n;
        }),
      ],
    });
    const handle = await s.sluice.enqueue(parent, [1, 2, 3, 4]);
    const outcome = await handle.result({ timeoutMs: 20_000 }).catch((e: unknown) => e);
    await sound(s);
    return { outcome, attempts, ran, s };
  }

  test("failFast starts no further items, and the parent fails without a retry", async () => {
    const { outcome, attempts, ran } = await policy("failFast");
    expect(outcome).toMatchObject({ code: "task_failed" });
    expect((outcome as Error).message).toContain("no two");
    expect([attempts, ran]).toEqual([[1, 1], 2]);
  });

  test("finish runs the other items, then fails the map", async () => {
    const { outcome, ran } = await policy("finish");
    expect(outcome).toMatchObject({ code: "task_failed" });
    expect((outcome as Error).message).toContain('1 of 4 items of map "m" failed');
    expect(ran).toBe(4);
  });

  test("collect returns results and errors by index", async () => {
    const { outcome, ran } = await policy("collect");
    expect(outcome).toMatchObject({
      results: [1, null, 3, 4],
      errors: [{ index: 1, state: "failed", error: { message: "no two" } }],
      counts: { total: 4, succeeded: 3, failed: 1, cancelled: 0 },
    });
    expect(ran).toBe(4);
  });

  test("a handler may catch the failure of its map, but not its wait", async () => {
    const { outcome } = await policy("finish", true);
    expect(outcome).toBe("caught task_failed");
  });
});

test("retry of a failed parent reruns only the failed items of its map", async () => {
  const s = await scene();
  const ran: number[] = [];
  let broken = true;
  await s.worker({
    ...quick,
    handlers: [
      parent.handle((numbers, ctx) => ctx.map("m", numbers, item, { onError: "finish" })),
      item.handle((n) => {
        ran.push(n);
        if (n === 2 && broken) throw new Error("no two");
        return n;
      }),
    ],
  });
  const handle = await s.sluice.enqueue(parent, [1, 2, 3]);
  await expect(handle.result({ timeoutMs: 20_000 })).rejects.toMatchObject({ code: "task_failed" });
  broken = false;
  expect(await s.sluice.retry(handle.id)).toBe(true);
  expect(await handle.result({ timeoutMs: 20_000 })).toEqual([1, 2, 3]);
  expect(ran.toSorted((a, b) => a - b)).toEqual([1, 2, 2, 3]);
  await sound(s);
});

test("a handler that fails after its map gets the same results in its next attempt", async () => {
  const s = await scene();
  let items = 0;
  await s.worker({
    ...quick,
    handlers: [
      parent.handle(async (numbers, ctx) => {
        const results = await ctx.map("m", numbers, item);
        if (ctx.attempt === 1) throw new Error("after");
        return results;
      }),
      item.handle((n) => {
        items++;
        return n + 1;
      }),
    ],
  });
  const handle = await s.sluice.enqueue(parent, [1, 2]);
  expect(await handle.result({ timeoutMs: 20_000 })).toEqual([2, 3]);
  expect(items).toBe(2);
  expect((await handle.status())?.attempt).toBe(2);
});

test("a map whose list differs in the next execution is refused, and a function for the list is called once", async () => {
  const s = await scene();
  let asked = 0;
  const changing = task("changing", { retry: once });
  const asking = task("asking", { retry: once });
  await s.worker({
    ...quick,
    handlers: [
      changing.handle((_, ctx) => ctx.map("m", [++asked], item)),
      asking.handle((_, ctx) => ctx.map("m", async () => [++asked * 10], item)),
      item.handle((n) => n),
    ],
  });
  await expect((await s.sluice.enqueue(changing)).result({ timeoutMs: 20_000 })).rejects.toMatchObject({
    details: { error: { code: "map_changed" } },
  });
  asked = 0;
  expect(await (await s.sluice.enqueue(asking)).result({ timeoutMs: 20_000 })).toEqual([10]);
  expect(asked).toBe(1);
});

test("a map name that is used twice in one execution is refused, whether the first map has ended or not", async () => {
  const s = await scene();
  const asking = task("asking", { input: type<"after" | "beside">() });
  const one = { calls: 0, seen: [] as unknown[] };
  const seen = (e: unknown): void => void one.seen.push(e);
  await s.worker({
    ...quick,
    handlers: [
      asking.handle(async (how, ctx) => {
        one.calls++;
        const first = ctx.map("pages", () => [1], item);
        const found = how === "after" ? await first : null;
        await ctx.map("pages", () => [2, 3], item).catch(seen);
        return found ?? first;
      }),
      item.handle((n) => n),
    ],
  });
  for (const how of ["after", "beside"] as const) {
    Object.assign(one, { calls: 0, seen: [] });
    const handle = await s.sluice.enqueue(asking, how);
    // Each execution of the handler finds the map again under its name.
    expect(await handle.result({ timeoutMs: 20_000 })).toEqual([1]);
    expect(one.calls).toBe(2);
    expect(one.seen.length).toBe(how === "after" ? 1 : 2);
    for (const error of one.seen) expect(error).toMatchObject({ code: "invalid_option", details: { map: "pages" } });
    expect((one.seen[0] as Error).message).toContain('map "pages"');
  }
  expect(await maps(s)).toEqual(["succeeded", "succeeded"]);
  await sound(s);
});

test("a map name whose items were refused can be used again in the same execution", async () => {
  const s = await scene();
  const trying = task("trying", { retry: once });
  const codes: unknown[] = [];
  await s.worker({
    ...quick,
    handlers: [
      trying.handle(async (_, ctx) => {
        const refused = ctx.map("pages", [Number.NaN], item);
        await refused.catch((e: { code?: unknown }) => codes.push(e.code));
        return ctx.map("pages", [1], item);
      }),
      item.handle((n) => n),
    ],
  });
  expect(await (await s.sluice.enqueue(trying)).result({ timeoutMs: 20_000 })).toEqual([1]);
  expect(codes).toEqual(["input_not_serialisable", "input_not_serialisable"]);
});

test("maps with different names run concurrently, also nested ones, and an empty map ends immediately", async () => {
  const s = await scene();
  const outer = task("outer", { input: type<number>() });
  const grandparent = task("grandparent");
  await s.worker({
    ...quick,
    handlers: [
      grandparent.handle(async (_, ctx) => {
        const [a, b, none] = await Promise.all([
          ctx.map("a", [1, 2], outer, { window: 1 }),
          ctx.map("b", [3], item),
          ctx.map("none", [], item),
        ]);
        return { a, b, none };
      }),
      outer.handle((n, ctx) => ctx.map("inner", [n, n * 10], item, { window: 1 })),
      item.handle((n) => n + 1),
    ],
  });
  const handle = await s.sluice.enqueue(grandparent);
  expect(await handle.result({ timeoutMs: 20_000 })).toEqual({
    a: [
      [2, 11],
      [3, 21],
    ],
    b: [4],
    none: [],
  });
  await sound(s);
});

test.each([false, true])("cancel of a parent cancels its items (hold: %s)", async (hold) => {
  const s = await scene();
  const begun = signal();
  const heard = signal<unknown>();
  let ran = 0;
  await s.worker({
    ...quick,
    leaseMs: 1_000,
    handlers: [
      parent.handle((numbers, ctx) => ctx.map("m", numbers, item, { window: 1, hold })),
      item.handle(async (_, ctx) => {
        ran++;
        begun.resolve();
        await new Promise<void>((resolve) => {
          ctx.signal.addEventListener("abort", () => resolve());
        });
        heard.resolve(ctx.signal.reason);
        throw ctx.signal.reason;
      }),
    ],
  });
  const handle = await s.sluice.enqueue(parent, [1, 2, 3]);
  await begun.promise;
  await handle.cancel({ reason: "enough" });
  expect(await heard.promise).toMatchObject({ code: "task_cancelled" });
  await until("the map to end", async () => (await maps(s))[0] === "cancelled");
  expect(ran).toBe(1);
  await until("the parent to end", async () => (await handle.status())?.state === "cancelled");
  await sound(s);
});

describe("the items of a cancelled parent", () => {
  const begins = async () => {
    const s = await scene();
    const begun = signal();
    await s.worker({
      ...quick,
      leaseMs: 1_000,
      handlers: [
        parent.handle((numbers, ctx) => ctx.map("m", numbers, item, { window: 1 })),
        item.handle(async (n, ctx) => {
          begun.resolve();
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          return n;
        }),
      ],
    });
    return { s, begun };
  };
  /** The state in the database now, before a keeper runs. */
  const left = async (s: Scene): Promise<unknown> => {
    const { rows } = await s.sql.query<{ n: number }>(
      `select count(*)::int as n from sluice.workflow_task w where not exists (select from sluice.done d where d.id = w.id)
        and not exists (select from sluice.running r where r.id = w.id)`,
    );
    const stopping = (await maps(s)).every((state) => state !== "running");
    return { stopping, waiting: rows[0]!.n };
  };
  const asleep = (s: Scene): Promise<unknown> =>
    until("its task to sleep", async () => {
      return (await s.sql.query("select from sluice.parent")).rows.length === 1;
    });
  const ends = async (s: Scene): Promise<void> => {
    await until("the map to end", async () => (await maps(s))[0] === "cancelled");
    await sound(s);
  };

  test("no item of a sleeping task starts after a cancel of its run has returned", async () => {
    const { s, begun } = await begins();
    const flow = workflow("flow", { input: type<number[]>() }, (w, numbers) => {
      w.task("fan", parent, numbers);
    });
    const run = await s.sluice.start(flow, [1, 2, 3]);
    await begun.promise;
    await asleep(s);
    expect(await run.cancel("enough")).toBe("cancelled");
    expect(await left(s)).toEqual({ stopping: true, waiting: 0 });
    await ends(s);
  });

  test("no item of a sleeping task starts after a cancel of the task has returned", async () => {
    const { s, begun } = await begins();
    const handle = await s.sluice.enqueue(parent, [1, 2, 3]);
    await begun.promise;
    await asleep(s);
    expect(await handle.cancel()).toBe("cancelled");
    expect(await left(s)).toEqual({ stopping: true, waiting: 0 });
    await ends(s);
  });

  test("the items of a sleeping task are cancelled soon after a cancel in a user's transaction commits", async () => {
    const { s, begun } = await begins();
    const handle = await s.sluice.enqueue(parent, [1, 2, 3]);
    await begun.promise;
    await asleep(s);
    const tx = await s.sql.connect();
    await tx.query("begin");
    expect(await handle.cancel({ tx })).toBe("cancelled");
    await tx.query("commit");
    tx.release();
    await ends(s);
  });
});

/** A run paused during a map of three items, the first of which runs until `open`. */
async function pausedInMap() {
  const s = await scene();
  const begun = signal();
  const open = signal();
  await s.worker({
    ...quick,
    handlers: [
      parent.handle((numbers, ctx) => ctx.map("m", numbers, item, { window: 1 })),
      item.handle(async (n) => {
        begun.resolve();
        await open.promise;
        return n;
      }),
    ],
  });
  const flow = workflow("flow", { input: type<number[]>() }, (w, numbers) => ({
    found: w.task("fan", parent, numbers),
  }));
  const run = await s.sluice.start(flow, [1, 2, 3]);
  await begun.promise;
  expect(await run.pause()).toBe(true);
  expect(await maps(s)).toEqual(["paused"]);
  return { s, run, open };
}

test("pause of a run pauses the maps of its tasks, and resume continues them", async () => {
  const { s, run, open } = await pausedInMap();
  open.resolve();
  await until("the first to be over", async () => {
    const look = "select from sluice.workflow_progress where name = 'm' and succeeded = 1";
    return (await s.sql.query(look)).rows.length === 1;
  });
  // The next item would have passed the window together with the end of the first.
  expect((await s.sql.query("select from sluice.waiting")).rows.length).toBe(2);
  expect(await run.resume()).toBe(true);
  expect(await run.result({ timeoutMs: 20_000 })).toEqual({ found: [1, 2, 3] });
  await sound(s);
});

test("a keeper finishes an interrupted resume for the maps of the run", async () => {
  const { s, run, open } = await pausedInMap();
  open.resolve();
  await s.sql.query("select sluice.workflow_pause($1, false)", [run.id]);
  expect(await run.result({ timeoutMs: 20_000 })).toEqual({ found: [1, 2, 3] });
  await sound(s);
});

test("a handler with hold: true that times out finds its items in its next attempt", async () => {
  const s = await scene();
  const open = signal();
  const slow = task("slow", { timeoutMs: 200, retry: { attempts: 25, backoff: fixed(1) } });
  let items = 0;
  await s.worker({
    ...quick,
    handlers: [
      slow.handle(async (_, ctx) => {
        if (ctx.attempt === 2) open.resolve();
        return ctx.map("m", [7], item, { hold: true });
      }),
      item.handle(async (n) => {
        items++;
        await open.promise;
        return n;
      }),
    ],
  });
  const handle = await s.sluice.enqueue(slow);
  expect(await handle.result({ timeoutMs: 20_000 })).toEqual([7]);
  expect(items).toBe(1);
  expect((await handle.status())?.attempt).toBeGreaterThan(1);
});

test("a handler that catches the wait of its map can do nothing more in this execution", async () => {
  const s = await scene();
  const effects: string[] = [];
  const other = task("other");
  await s.worker({
    ...quick,
    handlers: [
      parent.handle(async (numbers, ctx) => {
        const results = await ctx.map("m", numbers, item).catch(() => null);
        if (results === null) {
          for (const attempt of [ctx.map("second", numbers, item), ctx.enqueue(other), ctx.transaction(async () => {})])
            effects.push(
              await attempt.then(
                () => "done",
                (e: Error) => e.name,
              ),
            );
        }
        return results;
      }),
      item.handle((n) => n),
    ],
  });
  const handle = await s.sluice.enqueue(parent, [1]);
  expect(await handle.result({ timeoutMs: 20_000 })).toEqual([1]);
  expect(effects).toEqual(["WaitOutcome", "WaitOutcome", "WaitOutcome"]);
  expect((await maps(s)).length).toBe(1);
});

test("items of a map get their limit keys and order keys, and one invalid item leaves no task behind", async () => {
  const s = await scene();
  const perUser = limit("per-user", { perKey: 1 });
  const keyed = task("keyed", {
    input: type<{ user: string; n: number }>(),
    limits: [{ limit: perUser, key: ({ user }) => user }],
    order: ({ user }) => user,
  });
  const fan = task("fan", { input: type<{ user: string; n: number }[]>(), retry: once });
  const seen = new Map<string, number[]>();
  let now = 0;
  let peak = 0;
  await s.worker({
    ...quick,
    handlers: [
      fan.handle((items, ctx) => ctx.map("m", items, keyed, { window: 4 })),
      keyed.handle(async ({ user, n }) => {
        peak = Math.max(peak, ++now);
        seen.set(user, [...(seen.get(user) ?? []), n]);
        await new Promise((resolve) => setImmediate(resolve));
        now--;
        return n;
      }),
    ],
  });
  const items = Array.from({ length: 30 }, (_, n) => ({ user: `u${n % 3}`, n }));
  const handle = await s.sluice.enqueue(fan, items);
  expect(await handle.result({ timeoutMs: 20_000 })).toEqual(items.map(({ n }) => n));
  for (const numbers of seen.values()) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(peak).toBeLessThanOrEqual(3);
  const bad = await s.sluice.enqueue(fan, [items[0]!, { user: "", n: 1 }]);
  await expect(bad.result({ timeoutMs: 20_000 })).rejects.toThrow(/item 1/);
  expect((await maps(s)).length).toBe(1);
  await sound(s);
});

test("ctx.map refuses invalid arguments", async () => {
  const s = await scene();
  const codes: unknown[] = [];
  const asking = task("asking", { retry: once });
  await s.worker({
    ...quick,
    handlers: [
      asking.handle(async (_, ctx) => {
        const map = ctx.map as (...args: unknown[]) => Promise<unknown>;
        const calls: (() => Promise<unknown>)[] = [
          () => map("", [1], item),
          () => map("m", "text", item),
          () => map("m", () => 5, item),
          () => map("m", [1], "item"),
          () => map("m", [1], item, { window: 0 }),
          () => map("m", [1], item, { onError: "ignore" }),
          () => map("m", [1], item, { hold: 1 }),
          () => map("m", [1], item, { windows: 2 }),
          () => map("m", [Number.NaN], item),
          () => ctx.transaction(() => map("m", [1], item)),
        ];
        for (const call of calls)
          codes.push(
            await call().then(
              () => "accepted",
              (e: { code: string }) => e.code,
            ),
          );
      }),
      item.handle((n) => n),
    ],
  });
  await (await s.sluice.enqueue(asking)).result({ timeoutMs: 20_000 });
  expect(codes).toEqual([
    "invalid_name",
    "invalid_option",
    "invalid_option",
    "unknown_task",
    "invalid_option",
    "invalid_option",
    "invalid_option",
    "invalid_option",
    "input_not_serialisable",
    "invalid_option",
  ]);
  expect(await maps(s)).toEqual([]);
});

test("items with the order key of their waiting parent are refused with an explanation", async () => {
  const s = await scene({ logger: silentLogger });
  const keyed = type<{ key: string }>();
  const outer = task("outer", { input: keyed, order: ({ key }) => key, retry: once });
  const inner = task("inner", { input: keyed, order: ({ key }) => key, retry: once });
  await s.worker({
    ...quick,
    handlers: [
      outer.handle(async (_, ctx) => {
        await ctx.map("others", [{ key: "b" }], inner);
        await ctx.map("own", [{ key: "b" }, { key: "a" }], inner);
      }),
      inner.handle(() => {}),
    ],
  });
  const handle = await s.sluice.enqueue(outer, { key: "a" });
  await expect(handle.result({ timeoutMs: 20_000 })).rejects.toMatchObject({
    code: "task_failed",
    details: {
      error: {
        code: "invalid_key",
        message: `task ${handle.id} waits for these items and holds order key "a", which item 1 needs: they would wait for each other forever`,
      },
    },
  });
  expect(await maps(s)).toEqual(["succeeded"]);
  await sound(s);
});

test("hold: true has no effect in a suspect, because its worker runs nothing else", async () => {
  const s = await scene();
  const handle = await s.sluice.enqueue(parent, [1, 2]);
  await s.sql.query(`with gone as (delete from sluice.ready returning id, stream, attempt, lanes)
    insert into sluice.suspect (id, stream, attempt, lanes) select * from gone`);
  await s.sql.query("insert into sluice.crash (id, workers) values ($1, '{1,2,3}')", [handle.id]);
  let runs = 0;
  await s.worker({
    ...quick,
    leaseMs: 3_000,
    handlers: [
      parent.handle((numbers, ctx) => {
        runs++;
        return ctx.map("m", numbers, item, { hold: true });
      }),
      item.handle((n) => n),
    ],
  });
  expect(await handle.result({ timeoutMs: 15_000 })).toEqual([1, 2]);
  expect(runs).toBe(2);
  await sound(s);
});

test("a map that a zombie creates at the same moment is reused, not created twice", async () => {
  const s = await scene();
  const zombie = await s.sql.connect();
  const opened = signal();
  const attempts: number[] = [];
  let asked = 0;
  await s.worker({
    ...quick,
    handlers: [
      parent.handle(async (numbers, ctx) => {
        attempts.push(ctx.attempt);
        await opened.promise;
        return ctx.map("m", () => (asked++, numbers), item);
      }),
      item.handle((n) => n),
    ],
  });
  const handle = await s.sluice.enqueue(parent, [1, 2]);
  const [claim] = await until("it to be claimed", async () => {
    const found = await s.sql.query<{ worker: string; claim: string; stream: number }>(
      "select worker, claim, (select id from sluice.stream where type = 'item') as stream from sluice.running",
    );
    return found.rows.length === 1 && found.rows;
  });
  await zombie.query("begin");
  const { rows } = await zombie.query<{ run: string }>(
    "select run from sluice.workflow_map($1, $2, $3, 'm', $4, 2, null, 'failFast')",
    [claim!.worker, handle.id, claim!.claim, claim!.stream],
  );
  const { run } = rows[0]!;
  const inputs = ["10", "20"].join("\u001e");
  const place = "select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 1, $3)";
  await zombie.query(place, [run, claim!.stream, inputs]);
  await zombie.query("select sluice.workflow_placed($1, 1::smallint)", [run]);
  opened.resolve();
  await until("the holder to wait for it", async () => {
    const waiting =
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%workflow_map(%'";
    return (await s.sql.query(waiting)).rows.length === 1;
  });
  await zombie.query("commit");
  zombie.release();
  expect(await handle.result({ timeoutMs: 20_000 })).toEqual([10, 20]);
  // Whether it waited for the items or found them finished: nothing failed, so no attempt was used.
  expect([...new Set(attempts)]).toEqual([1]);
  expect([asked, await maps(s)]).toEqual([1, ["succeeded"]]);
  await sound(s);
});
