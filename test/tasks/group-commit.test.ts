import { setImmediate as turn } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { limit, Sluice, task, type, type TaskHandle } from "../../src/index.js";
import { codeOf, openHouse, WAITING_FOR, type House } from "../client/house.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** How many transactions inserted these tasks. */
async function transactions(handles: readonly TaskHandle[]): Promise<number> {
  const ids = handles.map(({ id }) => id);
  const [row] = await house.sql<{ n: number }>(
    "select count(distinct xmin::text)::int as n from sluice.task where id = any ($1::bigint[])",
    [ids],
  );
  return row!.n;
}

const ascends = (handles: readonly TaskHandle[]): boolean =>
  handles.every(({ id }, i) => i === 0 || BigInt(id) > BigInt(handles[i - 1]!.id));

test("fifty concurrent enqueues share one transaction, and their ids follow the order of the calls", async () => {
  const note = task("fifty", { input: type<number>() });
  await house.sluice.enqueue(note, -1);
  const handles = await Promise.all(upTo(50).map((n) => house.sluice.enqueue(note, n)));
  expect(await transactions(handles)).toBe(1);
  expect(ascends(handles)).toBe(true);
  const { id } = handles[7]!;
  expect(await house.sql("select input from sluice.task where id = $1", [id])).toEqual([{ input: 7 }]);
});

test("concurrent enqueues of one type with limits and keys share a transaction", async () => {
  const tenants = limit("gc-tenants", { perKey: 2, total: 10 });
  const note = task("gc-limited", {
    input: type<number>(),
    order: (n) => `order ${n % 5}`,
    limits: [{ limit: tenants, key: (n) => `tenant ${n % 3}` }],
  });
  await house.sluice.enqueue(note, 0);
  const handles = await Promise.all(upTo(30).map((n) => house.sluice.enqueue(note, n)));
  expect(await transactions(handles)).toBe(1);
  const keys = await house.sql<{ lane_keys: string[] }>(
    "select lane_keys from sluice.task where id = any ($1::bigint[]) order by id",
    [handles.map(({ id }) => id)],
  );
  expect(keys.map((row) => row.lane_keys)).toEqual(upTo(30).map((n) => [`order ${n % 5}`, `tenant ${n % 3}`]));
});

test("concurrent enqueues of one order key run in the order of the calls, whatever their options", async () => {
  const seen: number[] = [];
  const step = task("gc-ordered", { input: type<number>(), order: () => "one" });
  const handles = await Promise.all(upTo(40).map((n) => house.sluice.enqueue(step, n, { priority: n % 4 })));
  const worker = await house.work([step.handle((n) => void seen.push(n))]);
  await Promise.all(handles.map((handle) => handle.result({ timeoutMs: 20_000 })));
  await worker.stop();
  expect(seen).toEqual(upTo(40));
});

test("a task that the database refuses rejects alone, and concurrent ones are enqueued", async () => {
  const note = task("gc-refused", { input: type<{ n: number }>() });
  await house.sluice.enqueue(note, { n: -1 });
  await house.sql(`create function refuse_thirteen() returns trigger language plpgsql as
    $$ begin if new.input ->> 'n' = '13' then raise 'thirteen' using errcode = '22023'; end if; return new; end $$`);
  await house.sql(
    "create trigger thirteen before insert on sluice.task for each row execute function refuse_thirteen()",
  );
  const outcomes = await Promise.allSettled(upTo(20).map((n) => house.sluice.enqueue(note, { n })));
  await house.sql("drop trigger thirteen on sluice.task");
  const rejected = outcomes.flatMap((o, n) => (o.status === "rejected" ? [[n, o.reason]] : []));
  expect(rejected).toEqual([[13, expect.objectContaining({ code: "22023", message: "thirteen" })]]);
  const rows = await house.sql<{ n: number }>(
    `select (input ->> 'n')::int as n from sluice.task t join sluice.stream s on s.id = t.stream
     where s.type = 'gc-refused' order by t.id`,
  );
  expect(rows.map(({ n }) => n)).toEqual([-1, ...upTo(20).filter((n) => n !== 13)]);
});

test("an idempotency key that an open transaction holds delays only the call that needs it", async () => {
  const note = task("gc-keys", { input: type<number>() });
  const tx = await house.begin();
  await house.sluice.enqueue(note, 0, { tx, idempotencyKey: "held" });
  let isDone = false;
  const held = house.sluice.enqueue(note, 0, { idempotencyKey: "held" }).finally(() => (isDone = true));
  const others = await Promise.all([
    house.sluice.enqueue(note, 1, { idempotencyKey: "free" }),
    house.sluice.enqueue(note, 2),
  ]);
  expect(others.map(({ existed }) => existed)).toEqual([false, false]);
  expect(isDone).toBe(false);
  await tx.query("commit");
  tx.release();
  expect((await held).existed).toBe(true);
});

test("an enqueue in a caller's transaction shares no statement with concurrent ones", async () => {
  const note = task("gc-tx", { input: type<number>() });
  const tx = await house.begin();
  const [inside, outside] = await Promise.all([house.sluice.enqueue(note, 1, { tx }), house.sluice.enqueue(note, 2)]);
  await tx.query("rollback");
  tx.release();
  expect(await inside.status()).toBeNull();
  expect(await outside.status()).not.toBeNull();
});

test("close() rejects calls that wait for another statement with the code closed, and never sends them", async () => {
  // The first statement does not count as stalled, however long the test takes to get here.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const note = task("gc-closed", { input: type<number>() });
  const pool = new pg.Pool({ connectionString: house.url });
  const sluice = await Sluice.connect({ pool });
  await sluice.enqueue(note, 0);
  const before = await house.tasks();
  const lock = await house.begin();
  await lock.query("lock table sluice.stream in access exclusive mode");
  const first = sluice.enqueue(note, 1);
  await expect.poll(async () => (await lock.query(WAITING_FOR, ["sluice.stream"])).rowCount).toBe(1);
  const codes = upTo(20).map((n) => codeOf(() => sluice.enqueue(note, n)));
  await turn();
  await sluice.close();
  expect(await Promise.all(codes)).toEqual(codes.map(() => "closed"));
  await lock.query("rollback");
  lock.release();
  // The statement is in flight on a connection of the caller's, which close() does not end.
  expect((await first).existed).toBe(false);
  expect(await house.tasks()).toBe(before + 1);
  await pool.end();
});
