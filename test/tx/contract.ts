import { afterAll, beforeAll, expect, test } from "vitest";
import { limit, task, type, type Queryable } from "../../src/index.js";
import { codeOf, openHouse, type House } from "../client/house.js";
import type { Library, Opened } from "./library.js";
import { sendWelcome } from "./snippets/tasks.js";

const note = task("note", { input: type<unknown>() });
const tenant = limit("tenant", { perKey: 1 });
const mails = limit("mails", { total: 1 });
const placed = task("placed", {
  input: type<{ account: string; tenant: string }>(),
  order: (i) => i.account,
  limits: (i) => [tenant.for(i.tenant), mails],
});

const steps = task("steps", {
  input: type<{ n: number }>(),
  order: () => "it's $1 ?",
  limits: [mails],
});

/** Texts that are known to break drivers, templates and JSON. */
const NASTY = [
  `it's "quoted" and \`ticked\``,
  "a ? ?? \\? ?| and :name :: @> ??| mark",
  "$1 $2 $$ $tag$ ${x} {1,2}",
  "back\\slash \\\\ \\n \\u0041 E'\\''",
  "Zoë 東京 🦭 e\u0301 \u200f\u00a0",
  "'; drop table account; --",
  "2020-01-01T00:00:00.000Z",
  "null",
  "123",
  "true",
] as const;

/** Every library must pass these tests: its transaction is the transaction of the task. */
export function contract(open: (url: string) => Library | Promise<Library>): void {
  let house: House;
  let library: Library;

  beforeAll(async () => {
    house = await openHouse();
    await house.sql("create table account (id serial primary key, name text not null)");
    library = await open(house.url);
  });
  afterAll(async () => {
    await library.close();
    await house.close();
  });

  const accounts = async (name: string): Promise<number> =>
    (await house.sql("select from account where name = $1", [name])).length;
  const inputs = async (): Promise<unknown[]> =>
    (await house.sql<{ input: unknown }>("select input from sluice.task order by id")).map((row) => row.input);
  const rolledBack = async (fn: (opened: Opened) => Promise<unknown>): Promise<void> => {
    const wanted = new Error("rolled back on purpose");
    const attempt = library.transaction(async (opened) => {
      await fn(opened);
      throw wanted;
    });
    await expect(attempt).rejects.toBe(wanted);
  };

  test("commits the row and the task together and shows neither before", async () => {
    const before = await house.tasks();
    const handle = await library.transaction(async ({ tx, insert }) => {
      await insert("both");
      const made = await house.sluice.enqueue(note, "both", { tx });
      expect([await accounts("both"), await house.tasks()]).toEqual([0, before]);
      return made;
    });
    expect([await accounts("both"), await house.tasks()]).toEqual([1, before + 1]);
    expect(handle.id).toMatch(/^\d+$/);
    expect(await handle.status()).toMatchObject({ id: handle.id, type: "note", state: "ready" });
  });

  test("rolls back both if the callback throws", async () => {
    const before = await house.tasks();
    await rolledBack(async ({ tx, insert }) => {
      await insert("neither");
      await house.sluice.enqueue(note, "neither", { tx });
    });
    expect([await accounts("neither"), await house.tasks()]).toEqual([0, before]);
  });

  test("rolls back both if a statement of the user fails", async () => {
    const before = await house.tasks();
    const attempt = library.transaction(async ({ tx, insert }) => {
      await house.sluice.enqueue(note, "broken", { tx });
      await insert(null as never);
    });
    await expect(attempt).rejects.toThrow();
    expect(await house.tasks()).toBe(before);
  });

  test("creates all or none of 2,500 tasks in one transaction", async () => {
    const before = await house.tasks();
    const many = Array.from({ length: 2500 }, (_, n) => ({ n, text: NASTY[n % NASTY.length] }));
    await rolledBack(({ tx }) => house.sluice.enqueueMany(note, many, { tx }));
    expect(await house.tasks()).toBe(before);
    const made = await library.transaction(async ({ tx }) => {
      const enqueued = await house.sluice.enqueueMany(note, many, { tx });
      expect(await house.tasks()).toBe(before);
      return enqueued;
    });
    expect([made.count, made.existed, await house.tasks()]).toEqual([2500, 0, before + 2500]);
    const rows = await house.sql<{ id: string }>(
      "select id::text from sluice.task order by sluice.task.id desc limit 2500",
    );
    expect(made.ids()).toEqual(rows.map((row) => row.id).toReversed());
    expect((await inputs()).slice(-2500)).toEqual(many);
  });

  test("uses up an idempotency key on commit and not after a rollback", async () => {
    const key = `key ${NASTY.join(" ")}`;
    await rolledBack(async ({ tx }) => {
      const lost = await house.sluice.enqueue(note, 1, { tx, idempotencyKey: key });
      expect(lost.existed).toBe(false);
    });
    const [first, second] = await library.transaction(async ({ tx }) => [
      await house.sluice.enqueue(note, 1, { tx, idempotencyKey: key }),
      await house.sluice.enqueue(note, 1, { tx, idempotencyKey: key }),
    ]);
    const third = await house.sluice.enqueue(note, 1, { idempotencyKey: key });
    expect([first.existed, second.existed, third.existed]).toEqual([false, true, true]);
    expect([second.id, third.id]).toEqual([first.id, first.id]);
    const many = await library.transaction(({ tx }) =>
      house.sluice.enqueueMany(note, ["a", "b", "a"], {
        tx,
        idempotencyKey: (input) => `many ${String(input)}`,
      }),
    );
    expect([many.count, many.existed]).toEqual([3, 1]);
  });

  test("keeps code and message of a database error", async () => {
    await house.sluice.enqueue(note, 1, { idempotencyKey: "taken" });
    const attempt = (tx?: Queryable) => house.sluice.enqueue(note, 2, { idempotencyKey: "taken", ...(tx && { tx }) });
    const outside = await attempt().catch((e: unknown) => e as Error);
    const inside = library.transaction(({ tx }) => attempt(tx));
    const { name, message } = outside as Error;
    const code = "idempotency_conflict";
    await expect(inside).rejects.toMatchObject({ name, message, code });
  });

  test("declares a removed limit again on the next attempt", async () => {
    const gone = limit("gone", { total: 1 });
    const limited = task("limited", { input: type<number>(), limits: [gone] });
    const attempt = () => library.transaction(({ tx }) => house.sluice.enqueue(limited, 1, { tx }));
    const { id } = await attempt();
    await house.sluice.task(id).cancel();
    await house.sluice.limits.remove("gone");
    expect(await codeOf(attempt)).toBe("unknown_limit");
    expect(await codeOf(attempt)).toBe("accepted");
  });

  test("reports a missing schema as schema_missing", async () => {
    const attempt = library.transaction(async ({ tx }) => {
      const nowhere = {
        query: (text: string, params?: unknown[]) => tx.query(text.replace('"sluice".', '"nowhere".'), params),
      };
      await house.sluice.enqueue(note, 1, { tx: nowhere });
    });
    await expect(attempt).rejects.toMatchObject({ code: "schema_missing" });
  });

  test("uses the same order keys, limits per key and totals as outside a transaction", async () => {
    for (const [at, text] of NASTY.entries()) {
      const input = { account: `account ${text}`, tenant: `tenant ${at} ${text}` };
      await library.transaction(({ tx }) => house.sluice.enqueue(placed, input, { tx }));
      await house.sluice.enqueue(placed, input);
      const [outside, inside] = await house.sql<{ lane_keys: string[]; gate: number }>(
        "select gate, lanes, lane_limits, lane_keys from sluice.task order by id desc limit 2",
      );
      expect(inside).toEqual(outside);
      expect(inside!.lane_keys).toEqual([input.account, input.tenant]);
      expect(inside!.gate).not.toBe(0);
    }
  });

  test("runs tasks of an order key in the order of the transaction", async () => {
    const seen: number[] = [];
    const worker = await house.work([steps.handle(({ n }) => void seen.push(n))]);
    const wanted = Array.from({ length: 30 }, (_, n) => n);
    await library.transaction(async ({ tx }) => {
      await house.sluice.enqueueMany(
        steps,
        wanted.slice(0, 20).map((n) => ({ n })),
        { tx },
      );
      for (const n of wanted.slice(20)) await house.sluice.enqueue(steps, { n }, { tx });
    });
    await expect.poll(() => seen, { timeout: 20_000 }).toHaveLength(30);
    await worker.stop();
    expect(seen).toEqual(wanted);
  });

  test("stores inputs exactly, one by one and in bulk", async () => {
    const all = [...NASTY, NASTY, Object.fromEntries(NASTY.map((text) => [text, text])), null, 0];
    await library.transaction(async ({ tx }) => {
      for (const input of all) await house.sluice.enqueue(note, input, { tx });
      await house.sluice.enqueueMany(note, all, { tx });
    });
    expect((await inputs()).slice(-2 * all.length)).toEqual([...all, ...all]);
  });

  test("passes on time, priority and group", async () => {
    const runAt = new Date(Date.now() + 3_600_000);
    const [at, late] = await library.transaction(async ({ tx }) => [
      await house.sluice.enqueue(note, 1, { tx, runAt, priority: -7, group: "g", groupLimit: 3 }),
      await house.sluice.enqueue(note, 1, { tx, delayMs: 86_400_000 * 30 }),
    ]);
    expect(await at.status()).toMatchObject({ state: "scheduled", runAt, priority: -7 });
    const { createdAt, runAt: later } = (await late.status())!;
    expect(later!.getTime() - createdAt.getTime()).toBeGreaterThan(86_400_000 * 29);
    expect(await house.sluice.limits.get("g")).toMatchObject({ total: 3 });
  });

  test("commits and rolls back a cancel", async () => {
    const handle = await house.sluice.enqueue(note, "to cancel");
    await rolledBack(async ({ tx }) => expect(await handle.cancel({ tx, reason: NASTY[1] })).toBe("cancelled"));
    expect(await handle.status()).toMatchObject({ state: "ready" });
    await library.transaction(({ tx }) => handle.cancel({ tx, reason: NASTY[1] }));
    expect(await handle.status()).toMatchObject({ state: "cancelled" });
  });

  test("runs the code of the documentation and its task", async () => {
    const seen: unknown[] = [];
    const worker = await house.work([sendWelcome.handle((input) => void seen.push(input))]);
    await library.signUp(house.sluice, "it's ?");
    await expect.poll(() => seen, { timeout: 10_000 }).toHaveLength(1);
    await worker.stop();
    const [account] = await house.sql<{ id: number }>("select id from account where name = $1", ["it's ?"]);
    expect(seen).toEqual([{ account: account!.id, name: "it's ?" }]);
  });
}
