// A step reports the limits that its tasks passed and until when each was full.
import { expect, test } from "vitest";
import { PassedReader, type Passed } from "../../src/postgres/passed.js";
import { Scene, type Held, type Session, type TestWorker } from "../support/sql.js";

/** A database whose clock advances by ten seconds on request. */
async function on(use: (a: Session, later: () => Promise<void>) => Promise<void>): Promise<void> {
  const scene = await Scene.open();
  let ms = 0;
  try {
    const [a] = await scene.sessions(1);
    await use(a, () => scene.moveClock((ms += 10_000)));
    expect(await scene.violations()).toEqual([]);
  } finally {
    await scene.close();
  }
}

interface Told extends Held {
  readonly passed: Passed | null;
}

let token = 16_000;

/** Settles these and claims n more. */
async function step(
  a: Session,
  worker: TestWorker,
  n: number,
  { done = [], meters = true }: { readonly done?: readonly Held[]; readonly meters?: boolean } = {},
): Promise<Told[]> {
  token += 16;
  const rows = await a.rows<{ id: string; stream: number; attempt: number; passed: string | null }>(
    `select id, stream, attempt, passed
    from sluice.step($1, $2, $3, $4, $5, $6, p_meters => $7) where id is not null order by id`,
    [
      worker.id,
      token,
      worker.streams,
      n,
      done.length === 0 ? null : done.map(({ id }) => id),
      done.length === 0 ? null : done.map((held) => held.token),
      meters,
    ],
  );
  const reader = new PassedReader();
  return rows.map(({ id, stream, attempt, passed }) => ({
    id: Number(id),
    stream,
    attempt,
    token: String(token),
    passed: passed === null ? null : reader.read(passed),
  }));
}

const lateOf = (told: readonly Told[]): boolean[][] =>
  told.map(({ passed }) => passed!.limits.map(({ fullMs }) => passed!.waitMs > fullMs));

async function stage(a: Session, total: number) {
  const limits = [await a.limit("mail", { total })];
  const stream = await a.type("t", { limits });
  const worker = await a.register([stream], 100, 3_600_000);
  return { limits, stream, worker, enqueue: (n: number) => a.enqueue(stream, { n, limits }) };
}

test("a step reports passed limits only for the first task if tasks have no limits or meters are off", () =>
  on(async (a) => {
    const { worker, enqueue } = await stage(a, 9);
    const plain = await a.type("plain");
    const both = { ...worker, streams: [plain] };
    await a.enqueue(plain, { n: 3 });
    const told = await step(a, both, 9);
    expect(told.map(({ passed }) => passed?.limits)).toEqual([[], undefined, undefined]);
    await enqueue(3);
    const silent = await step(a, worker, 9, { meters: false });
    expect(silent.map(({ passed }) => passed?.limits)).toEqual([[], undefined, undefined]);
  }));

test("a limit counts as full until its first slot is returned, whenever a claim absorbs the slot", () =>
  on(async (a, later) => {
    const { worker, enqueue } = await stage(a, 2);
    await enqueue(2);
    const first = await step(a, worker, 9);
    expect(lateOf(first)).toEqual([[false], [false]]);
    await later();
    await enqueue(3);
    await later();
    // The worker claims nothing more, so the slots stay idle as credits.
    await step(a, worker, 0, { done: first });
    await later();
    await enqueue(2);
    await later();
    // One claim absorbs them and leaves a slot free: the next claim reads only the counter.
    expect(lateOf(await step(a, worker, 1))).toEqual([[true]]);
    const [second] = await step(a, worker, 1);
    expect(lateOf([second!])).toEqual([[true]]);
    // The limit is full again.
    const [third] = await step(a, worker, 1, { done: [second!] });
    expect(lateOf([third!])).toEqual([[true]]);
    expect(lateOf(await step(a, worker, 1, { done: [third!] }))).toEqual([[true]]);
  }));

test("a reused slot reports idle slots beside it, so later tasks do not count as having waited", () =>
  on(async (a, later) => {
    const { worker, enqueue } = await stage(a, 3);
    await enqueue(3);
    const [one, two, three] = await step(a, worker, 9);
    await later();
    await enqueue(1);
    await later();
    await step(a, worker, 0, { done: [one!, two!] });
    await later();
    await enqueue(1);
    await later();
    const [before] = await step(a, worker, 1, { done: [three!] });
    const [after] = await step(a, worker, 1, { done: [before!] });
    expect(lateOf([before!, after!])).toEqual([[true], [false]]);
  }));

test("a limit above its lowered total counts as full until enough slots are returned", () =>
  on(async (a, later) => {
    const { worker, enqueue, limits } = await stage(a, 5);
    await enqueue(5);
    const [one, two, three, four, five] = await step(a, worker, 9);
    await a.setLimit("mail", { total: 2 });
    await later();
    await step(a, worker, 0, { done: [one!, two!] });
    // Two slots were returned; three of two are still in use.
    expect(await a.value("select sluice.full_until($1)::text", limits)).toBe("infinity");
    await later();
    await enqueue(2);
    await later();
    await step(a, worker, 0, { done: [three!, four!] });
    await later();
    await enqueue(1);
    await later();
    // It takes the slot of the fifth task; another slot has been idle since the fourth ended.
    const [sixth] = await step(a, worker, 1, { done: [five!] });
    expect(lateOf([sixth!])).toEqual([[true]]);
    // The result is the same while the counter is locked.
    const [seventh] = await step(a, worker, 1);
    expect(lateOf([seventh!])).toEqual([[true]]);
    await step(a, worker, 0, { done: [sixth!, seventh!] });
    expect(lateOf(await step(a, worker, 1))).toEqual([[true]]);
  }));

test("a suspect task after three crashes reports its passed limits", () =>
  on(async (a) => {
    const { stream, worker } = await stage(a, 2);
    const tenant = await a.limit("tenant", { perKey: 1 });
    const [mail] = await a.rows<{ id: number }>("select id from sluice.limits where name = 'mail'");
    const [id] = await a.enqueue(stream, { limits: [mail!.id, tenant], keys: ["x"] });
    await a.script(`delete from sluice.dirty; delete from sluice.waiting;
      insert into sluice.lane values ((select lanes[1] from sluice.task), ${tenant}, 1, 1);
      insert into sluice.suspect select id, stream, 0, lanes, ${worker.id} from sluice.task`);
    const [row] = await a.rows<{ passed: string }>("select passed from sluice.claim_suspect($1, 7, $2)", [
      worker.id,
      id,
    ]);
    expect(new PassedReader().read(row!.passed)).toEqual({
      waitMs: -1,
      limits: [
        { limit: mail!.id, perKey: false, fullMs: Infinity },
        { limit: tenant, perKey: true, fullMs: Infinity },
      ],
    });
  }));
