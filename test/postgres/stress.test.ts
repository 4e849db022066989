import { expect, test } from "vitest";
import { Scene, type Held, type Session, type TestWorker } from "../support/sql.js";

// Many sessions at once do everything the schema offers, for some seconds. Each claim is judged in its
// own transaction, where the database itself can tell: the barrier keeps numbers still, and whatever
// this session has claimed must be allowed by all that is committed.

const SECONDS = 5;
// On a slow machine it continues until every kind of event has occurred, up to a maximum.
const SECONDS_MAX = 40;
const OFTEN = 5;
const KEYS = 12;
const LIMITS = { total: 4, perKey: 2, own: 5 };

interface Found {
  claims: number;
  rolledBack: number;
  changes: number;
  crashes: number;
  cancels: number;
  outOfOrder: string[];
  overLimit: string[];
  troubles: string[];
}

interface Terms {
  readonly found: Found;
  readonly streams: readonly number[];
  readonly limits: readonly number[];
  readonly until: number;
  readonly latest: number;
}

const kinds = ["claims", "rolledBack", "changes", "crashes", "cancels"] as const;

function goesOn({ found, until, latest }: Terms): boolean {
  const now = Date.now();
  return now < until || (now < latest && kinds.some((kind) => found[kind] <= OFTEN));
}

/** Lower ids of one order key must have ended, or never have been: one producer commits them in turn. */
const OVERTAKEN = `select t.id || ' before ' || b.id as it from sluice.task t join sluice.task b
  on b.lanes[1] = t.lanes[1] and b.id < t.id and not exists (select from sluice.done d where d.id = b.id)
  where t.id = any ($1::bigint[]) and t.lanes[1] >> 60 = 1`;

/** What this session sees running is at least what was running when it claimed. */
const OVER = `
  select 'gate ' || g.id || ': ' || n || ' of ' || g.cap as it from sluice.gate g
  cross join lateral (select count(*) as n, bool_or(r.id = any ($1::bigint[])) as mine from sluice.running r
    where g.id = any (sluice.gates_of(r.gate) || r.stream_gate)) r where r.mine and r.n > g.cap
  union all
  select 'lane ' || n.id || ': ' || r.n || ' of ' || sluice.cap_of(n.cap, n.limit_id) from sluice.lane n
  cross join lateral (select count(*) as n, bool_or(r.id = any ($1::bigint[])) as mine from sluice.running r where r.lanes @> array[n.id]) r
  where r.mine and r.n > sluice.cap_of(n.cap, n.limit_id)`;

function chance(share: number): boolean {
  return Math.random() < share;
}

function pick<T>(of: readonly T[]): T {
  return of[Math.floor(Math.random() * of.length)]!;
}

/** What a session may meet when another is quicker; anything else is a find. */
async function survive(found: Found, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (e) {
    found.troubles.push((e as Error).message);
  }
}

/** One producer owns its order keys and commits each batch before the next: ids are the order. */
async function produce(s: Session, t: Terms, name: string): Promise<void> {
  let left = 4_000;
  while (goesOn(t) && left > 0) {
    const n = 1 + Math.floor(Math.random() * 4);
    const limits = t.limits.filter(() => chance(0.5));
    const keyed = limits.includes(t.limits[0]!) ? { keys: [`tenant-${pick([1, 2, 3])}`] } : {};
    const order = chance(0.7) ? { order: `${name}-${Math.floor(Math.random() * KEYS)}` } : {};
    await s.begin();
    await s.enqueue(pick(t.streams), { n, limits, ...keyed, ...order, priority: pick([0, 0, 5]) });
    if (chance(0.1)) await s.rollback();
    else {
      await s.commit();
      left -= n;
    }
  }
}

class StressWorker {
  readonly #s: Session;
  readonly #t: Terms;
  #worker!: TestWorker;
  #held: Held[] = [];

  constructor(session: Session, terms: Terms) {
    this.#s = session;
    this.#t = terms;
  }

  async run(): Promise<void> {
    await this.#register();
    while (goesOn(this.#t)) {
      await survive(this.#t.found, () => this.#turn());
    }
    await this.#s.settle(this.#worker, "release", this.#held);
    await this.#s.value("select sluice.retire($1)", [this.#worker.id]);
  }

  async #register(): Promise<void> {
    // Some serve one type only, so that each type is unserved now and then.
    const streams = this.#t.streams.filter(() => chance(0.8));
    this.#worker = await this.#s.register(streams.length > 0 ? streams : this.#t.streams);
    this.#held = [];
  }

  async #turn(): Promise<void> {
    const { found } = this.#t;
    if (chance(0.005)) {
      // It dies: its lease is over and it does not know.
      await this.#s.rows("update sluice.worker set expires_at = '-infinity' where id = $1", [this.#worker.id]);
      found.crashes++;
      return this.#register();
    }
    const some = this.#held.filter(() => chance(0.4));
    if (some.length > 0 && chance(0.3)) {
      await this.#s.settle(this.#worker, pick(["retry", "snooze", "release", "fail"]), some, 2);
      this.#held = this.#held.filter((h) => !some.includes(h));
      return;
    }
    await this.#step(some);
  }

  async #step(done: readonly Held[]): Promise<void> {
    const { found } = this.#t;
    await this.#s.begin();
    const { held } = await this.#s.step(this.#worker, pick([0, 1, 2, 5, 12]), done);
    const ids = held.map((h) => h.id);
    if (ids.length > 0) {
      const told = async (text: string): Promise<string[]> =>
        (await this.#s.rows<{ it: string }>(text, [ids])).map((r) => r.it);
      found.outOfOrder.push(...(await told(OVERTAKEN)));
      found.overLimit.push(...(await told(OVER)));
    }
    if (chance(0.1)) {
      found.rolledBack++;
      await this.#s.rollback();
      return;
    }
    await this.#s.commit();
    found.claims += held.length;
    this.#held = [...this.#held.filter((h) => !done.includes(h)), ...held];
  }
}

/** Cancels, some of them in a transaction that rolls back late. */
async function cancel(s: Session, t: Terms): Promise<void> {
  while (goesOn(t)) {
    await survive(t.found, async () => {
      const ids = await s.rows<{ id: number }>(
        // Those that are next in their line, and some that run.
        `(select id::int from (select distinct on (lane) id from sluice.waiting order by lane, place, id) next order by random() limit 6)
          union all (select id::int from sluice.running order by random() limit 1)`,
      );
      await s.begin();
      await s.cancel(ids.map((r) => r.id));
      await s.rows("select pg_sleep(0.02)");
      await (chance(0.6) ? s.rollback() : s.commit());
      t.found.cancels++;
      await s.rows("select pg_sleep(0.05)");
    });
  }
}

async function change(s: Session, t: Terms): Promise<void> {
  while (goesOn(t)) {
    await survive(t.found, async () => {
      await s.setLimit("tenant", { perKey: pick([0, 1, 2, 5]) });
      await s.setLimit("mail", { total: pick([0, 1, 4, 9]) });
      await s.setLimit("own", { total: pick([0, 2, 5, 8]) });
      await s.value("select sluice.pause_queue('default', $1)", [chance(0.2)]);
      t.found.changes++;
      await s.rows("select pg_sleep(0.04)");
    });
  }
}

async function keep(s: Session, t: Terms): Promise<void> {
  while (goesOn(t)) {
    await survive(t.found, async () => {
      await s.due();
      await s.reap();
      await s.keep();
      await s.value("select sluice.shed()");
      await s.rows("select pg_sleep(0.005)");
    });
  }
}

/** A worker that serves everything takes what is left, until nothing is. */
async function drain(s: Session, t: Terms): Promise<void> {
  await s.value("select sluice.pause_queue('default', false)");
  for (const [name, shape] of Object.entries({
    tenant: { perKey: 50 },
    mail: { total: 50 },
    own: { total: 50 },
  }))
    await s.setLimit(name, shape);
  await s.rows("update sluice.worker set expires_at = '-infinity'");
  const worker = await s.register(t.streams);
  let held: Held[] = [];
  for (let idle = 0; idle < 20;) {
    await s.due();
    await s.reap();
    await s.keep();
    await s.value("select sluice.shed()");
    const suspect = await s.value<string | null>("select suspect from sluice.beat($1, 100, 0, false)", [worker.id]);
    if (suspect !== null && held.length === 0) {
      const claimed = await s.rows<{ attempt: number; stream: number }>(
        "select attempt, stream from sluice.claim_suspect($1, 7, $2)",
        [worker.id, suspect],
      );
      held = claimed.map((r) => ({ ...r, id: Number(suspect), token: "7" }));
    }
    const step = await s.step(worker, suspect === null ? 50 : 0, held);
    idle = step.held.length + held.length > 0 ? 0 : idle + 1;
    held = step.held;
    if (idle > 0) await s.rows("select pg_sleep(0.01)");
  }
}

test("a random load of all verbs leaves nothing out of order, above its limit, duplicated or lost", async () => {
  const scene = await Scene.open();
  const sessions = await scene.sessions(10);
  const [a] = sessions;
  const limits = [await a.limit("tenant", { perKey: LIMITS.perKey }), await a.limit("mail", { total: LIMITS.total })];
  const streams = [await a.type("free", { limits }), await a.type("own", { limits, concurrency: LIMITS.own })];
  const found: Found = {
    claims: 0,
    rolledBack: 0,
    changes: 0,
    crashes: 0,
    cancels: 0,
    outOfOrder: [],
    overLimit: [],
    troubles: [],
  };
  const began = Date.now();
  const [until, latest] = [began + SECONDS * 1_000, began + SECONDS_MAX * 1_000];
  const terms = { found, streams, limits, until, latest };
  await Promise.all([
    ...[0, 1, 2, 3, 4].map((i) => new StressWorker(sessions[i]!, terms).run()),
    produce(sessions[5]!, terms, "a"),
    produce(sessions[6]!, terms, "b"),
    cancel(sessions[7]!, terms),
    change(sessions[8]!, terms),
    keep(sessions[9]!, terms),
  ]);
  await drain(a, terms);
  const left = await a.value(
    "select count(*)::int from sluice.task t where not exists (select from sluice.done d where d.id = t.id)",
  );
  expect({ ...found, left, violations: await scene.violations() }).toMatchObject({
    outOfOrder: [],
    overLimit: [],
    troubles: [],
    left: 0,
    violations: [],
  });
  // It was a stress: every kind of trouble came, and work went on.
  for (const kind of kinds) expect(found[kind], kind).toBeGreaterThan(OFTEN);
  await scene.close();
}, 120_000);
