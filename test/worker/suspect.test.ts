import { expect, test } from "vitest";
import { fixed, snooze, task, type TaskHandle } from "../../src/index.js";
import { violations } from "../support/audit.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";

const LEASE_MS = 3_000;

/** Makes the task a suspect, as after three crashes. */
async function suspect(s: Scene, { id }: TaskHandle): Promise<void> {
  await s.sql.query(
    `with gone as (delete from sluice.ready where id = $1 returning *), counted as (insert into sluice.crash values ($1, '{1,2,3}'))
    insert into sluice.suspect (id, stream, attempt, lanes) select id, stream, attempt, lanes from gone`,
    [id],
  );
}

async function crashes(s: Scene, { id }: TaskHandle): Promise<number | undefined> {
  return (await s.sql.query("select cardinality(workers) as times from sluice.crash where id = $1", [id])).rows[0]
    ?.times;
}

test("a suspect runs alone, when its worker has nothing else in flight", async () => {
  const s = await scene();
  const [begin, finish] = [signal(), signal()];
  const [slow, odd, quick] = [task("slow"), task("odd"), task("quick")];
  const seen: string[] = [];
  const started = signal();
  const handle = await s.sluice.enqueue(odd);
  await suspect(s, handle);
  await s.sluice.enqueue(slow);
  const worker = await s.worker({
    leaseMs: LEASE_MS,
    handlers: [
      slow.handle(async () => {
        begin.resolve();
        await finish.promise;
        seen.push("slow");
      }),
      odd.handle(async () => {
        started.resolve();
        const waiting = await s.sluice.enqueue(quick);
        expect(worker.status().permitsInUse).toBe(1);
        seen.push(`odd, and quick is ${(await waiting.status())?.state}`);
      }),
      quick.handle(() => void seen.push("quick")),
    ],
  });
  await begin.promise;
  await until("the worker to be asked for the suspect", async () => {
    const { rows } = await s.sql.query("select reserved_by from sluice.suspect");
    return rows[0]?.reserved_by !== null;
  });
  finish.resolve();
  await started.promise;
  await until("all to end", async () => (await s.sluice.counts()).succeeded === 3);
  expect(seen).toEqual(["slow", "odd, and quick is ready", "quick"]);
  expect(await crashes(s, handle)).toBeUndefined();
});

test("a suspect that is released is still claimed alone", async () => {
  const s = await scene();
  const odd = task("odd", { concurrency: 1 });
  const handle = await s.sluice.enqueue(odd);
  await suspect(s, handle);
  const started = signal();
  const worker = await s.worker({
    leaseMs: LEASE_MS,
    handlers: [
      odd.handle(() => {
        started.resolve();
        return new Promise(() => {});
      }),
    ],
  });
  await started.promise;
  await worker.stop({ graceMs: 0 });
  expect((await s.sql.query("select id::text, attempt, reserved_by from sluice.suspect")).rows).toEqual([
    { id: handle.id, attempt: 0, reserved_by: null },
  ]);
  expect(await crashes(s, handle)).toBe(3);
  expect(await violations(s.sql)).toEqual([]);
});

test("a suspect that fails or snoozes is not poisoned at the next crash", async () => {
  const s = await scene();
  const odd = task("odd", { retry: { attempts: 3, backoff: fixed(60_000) } });
  const handles = [await s.sluice.enqueue(odd), await s.sluice.enqueue(odd)];
  for (const handle of handles) await suspect(s, handle);
  await s.worker({
    leaseMs: LEASE_MS,
    handlers: [
      odd.handle((_, ctx) => {
        throw ctx.id === handles[0]!.id ? new Error("as usual") : snooze(60_000);
      }),
    ],
  });
  for (const handle of handles) {
    await until("it to be put off", async () => (await handle.status())?.state === "scheduled");
    expect(await crashes(s, handle)).toBe(2);
  }
});

test("a worker that does not become empty leaves the suspect to others and continues its work", async () => {
  const s = await scene();
  const finish = signal();
  const begun = signal();
  const [slow, odd, quick] = [task("slow"), task("odd"), task("quick")];
  await suspect(s, await s.sluice.enqueue(odd));
  await s.sluice.enqueue(slow);
  const alone = signal();
  await s.worker({
    leaseMs: 500,
    handlers: [
      slow.handle(() => {
        begun.resolve();
        return finish.promise;
      }),
      odd.handle(() => alone.resolve()),
      quick.handle(() => {}),
    ],
  });
  await begun.promise;
  await until("the worker to offer nothing", async () => {
    const { rows } = await s.sql.query("select capacity_available from sluice.worker");
    return rows[0]?.capacity_available === 0;
  });
  await (await s.sluice.enqueue(quick)).result({ timeoutMs: 10_000 });
  await until("the reservation to be given up", async () => {
    const { rows } = await s.sql.query("select reserved_by from sluice.suspect");
    return rows[0]?.reserved_by === null;
  });
  finish.resolve();
  await alone.promise;
});

test("tasks of a worker that was only disconnected are not blamed for a crash", async () => {
  const s = await scene();
  const job = task("job");
  const handle = await s.sluice.enqueue(job);
  const value = async <T>(text: string, values: unknown[] = []): Promise<T> =>
    Object.values((await s.sql.query<Record<string, T>>(text, values)).rows[0]!)[0]!;
  const stream = await value<number>("select id from sluice.stream where type = 'job'");
  for (let outage = 1; outage <= 5; outage++) {
    const id = await value<string>("select sluice.register('w', $1, 60000, 10)::text", [[stream]]);
    const values = [id, outage, [stream]];
    const step = "select id::text from sluice.step($1, $2, $3, 1)";
    expect(await value(step, values)).toBe(handle.id);
    const survived = "select sluice.survived(array[$1::bigint])::text[]";
    // While its lease lasts it has lost nothing, and must report again later.
    expect(await value(survived, [id])).toEqual([id]);
    await s.sql.query("update sluice.worker set expires_at = '-infinity' where id = $1", [id]);
    // In every second round another session recovers the tasks first.
    if (outage % 2 === 0) await s.sql.query("select sluice.reap()");
    expect(await value(survived, [id])).toEqual([]);
    expect(await value(survived, [id])).toEqual([]);
    expect(await crashes(s, handle)).toBeUndefined();
  }
  expect(await violations(s.sql)).toEqual([]);
});

test("each of several disconnected workers withdraws its own blame, and only that", async () => {
  const s = await scene();
  const handle = await s.sluice.enqueue(task("job"));
  await s.sql.query("insert into sluice.crash values ($1, '{11,12,13}')", [handle.id]);
  const survived = async (ids: string): Promise<unknown> => s.sql.query("select sluice.survived($1)", [ids]);
  const blamed = async (): Promise<unknown> => (await s.sql.query("select workers::text[] from sluice.crash")).rows;
  await survived("{12}");
  expect(await blamed()).toEqual([{ workers: ["11", "13"] }]);
  await survived("{12,13}");
  expect(await blamed()).toEqual([{ workers: ["11"] }]);
  await survived("{11}");
  expect(await blamed()).toEqual([]);
});

test("a suspect whose worker was only disconnected remains a suspect, and is not poisoned", async () => {
  const s = await scene();
  const job = task("job");
  const handle = await s.sluice.enqueue(job);
  await suspect(s, handle);
  const { rows } = await s.sql.query<{ id: string }>(
    "select sluice.register('w', array(select id from sluice.stream), 60000, 10)::text as id",
  );
  const worker = rows[0]!.id;
  await s.sql.query("select sluice.beat($1, 1, 0, false)", [worker]);
  const claimed = await s.sql.query("select id from sluice.claim_suspect($1, 1, $2)", [worker, handle.id]);
  expect(claimed.rows).toHaveLength(1);
  await s.sql.query("update sluice.worker set expires_at = '-infinity'");
  await s.sql.query("select sluice.survived(array[$1::bigint])", [worker]);
  expect(await crashes(s, handle)).toBe(3);
  const there = await s.sql.query("select from sluice.suspect where id = $1", [handle.id]);
  expect(there.rowCount).toBe(1);
  expect(await violations(s.sql)).toEqual([]);
});
