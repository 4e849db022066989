import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/core/ports.js";
import { task, type } from "../../src/index.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";

const probe = task("probe", { input: type<number>() });
const other = task("other", { input: type<number>() });
// One of the seven connections for enqueues and queries listens.
const API = 6;

/** A connection outside every pool. */
async function aside({ url }: Scene): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: "audit" });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** The number of statements like this one that wait for a lock. */
async function waiting({ sql }: Scene, like: string): Promise<number> {
  const { rows } = await sql.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity where datname = current_database()
       and wait_event_type = 'Lock' and application_name <> 'audit' and query like $1`,
    [`%${like}%`],
  );
  return rows[0]!.n;
}

const put = async (client: pg.Client, n: number): Promise<string> => {
  const { rows } = await client.query<{ id: string }>("select sluice.enqueue('probe', to_json($1::int))::text as id", [
    n,
  ]);
  return rows[0]!.id;
};

const endedWith = async ({ sql }: Scene, ids: readonly string[]): Promise<string[]> => {
  const { rows } = await sql.query<{ state: string }>("select state from sluice.done where id = any ($1::bigint[])", [
    ids,
  ]);
  return rows.map(({ state }) => state);
};

describe("each kind of work has its own connections", () => {
  test("tasks are claimed, run and settled while all connections for enqueues and queries are busy", async () => {
    const s = await scene();
    await s.worker({ handlers: [probe.handle((n) => n)] });
    const [held, mine] = [await aside(s), await aside(s)];
    await held.query("begin");
    await s.sluice.enqueue(other, 0, { tx: held, idempotencyKey: "one" });
    // Six of them wait for the open transaction, the others for a connection.
    const blocked = Array.from({ length: 3 * API }, () => s.sluice.enqueue(other, 0, { idempotencyKey: "one" }));
    await until("every connection to be held", async () => (await waiting(s, "enqueue_many")) === API);
    const ids = [await put(mine, 1), await put(mine, 2)];
    await until("the tasks to end", async () => (await endedWith(s, ids)).length === 2);
    expect(await waiting(s, "enqueue_many")).toBe(API);
    await held.query("commit");
    const handles = await Promise.all(blocked);
    expect(handles.every(({ existed }) => existed)).toBe(true);
  });

  test("claims, settles and enqueues go on while all connections for handler transactions are busy", async () => {
    const s = await scene();
    const gate = signal();
    let [inside, begun] = [0, 0];
    const holding = other.handle(async (_, ctx) => {
      begun++;
      await ctx.transaction(async () => {
        inside++;
        await gate.promise;
      });
    });
    await s.worker({ handlers: [holding, probe.handle((n) => n)], handlerConnections: 2 });
    await s.sluice.enqueueMany(other, [1, 2, 3, 4, 5]);
    await until("all of them to want a transaction", () => begun === 5 && inside === 2);
    const results = await Promise.all(
      [1, 2, 3].map(async (n) => (await s.sluice.enqueue(probe, n)).result({ timeoutMs: 20_000 })),
    );
    expect(results).toEqual([1, 2, 3]);
    expect([begun, inside]).toEqual([5, 2]);
    gate.resolve();
    await until("the others to end", async () => (await s.sluice.counts()).succeeded === 8);
  });

  test("enqueues and queries go on while claims and settles are blocked", async () => {
    const s = await scene({ logger: silentLogger });
    await s.worker({ handlers: [probe.handle((n) => n)], claimLoops: 3 });
    const held = await aside(s);
    await held.query("begin");
    // Claims write here, enqueues do not.
    await held.query("lock table sluice.running in access exclusive mode");
    const handles = [await s.sluice.enqueue(probe, 0)];
    await until("a claim to wait", async () => (await waiting(s, "step(")) > 0);
    for (let n = 1; n <= 50; n++) handles.push(await s.sluice.enqueue(probe, n));
    expect(await s.sluice.limits.list()).toEqual([]);
    expect(
      await endedWith(
        s,
        handles.map(({ id }) => id),
      ),
    ).toEqual([]);
    await held.query("commit");
    await Promise.all(handles.map((handle) => handle.result({ timeoutMs: 20_000 })));
  });
});

const PROBES = 40;
const OUTSTANDING_MIN = 500;
const TICK_MS = 10;
const PER_TICK = 10;

const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;

/** At least 1,000 enqueues and queries a second, and always many more than there are connections. */
class Flood {
  readonly #s: Scene;
  readonly tookMs: number[] = [];
  #under = 0;
  #timer: NodeJS.Timeout | null = null;
  #sent = 0;
  failed: unknown = null;

  constructor(s: Scene) {
    this.#s = s;
  }

  start(): void {
    this.#timer = setInterval(() => {
      const missing = Math.max(PER_TICK, OUTSTANDING_MIN - this.#under);
      for (let i = 0; i < missing; i++) void this.#send();
    }, TICK_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer!);
    await until("the flood to run off", () => this.#under === 0, 60_000);
  }

  async #send(): Promise<void> {
    const [n, began] = [this.#sent++, performance.now()];
    this.#under++;
    try {
      if (n % 2 === 0) await this.#s.sluice.enqueue(other, n);
      else await this.#s.sluice.task(String(n)).status();
      this.tookMs.push(performance.now() - began);
    } catch (e) {
      this.failed = e;
    }
    this.#under--;
  }
}

test("a flood of enqueues and queries in the same process does not delay a claim", async () => {
  const s = await scene();
  const started = new Map<number, (at: number) => void>();
  const handler = probe.handle((n) => started.get(n)?.(performance.now()));
  await s.worker({ handlers: [handler] });
  await s.sluice.sync([other]);
  const mine = await aside(s);
  const measure = async (from: number): Promise<number> => {
    const times: number[] = [];
    for (let n = from; n < from + PROBES; n++) {
      const start = new Promise<number>((resolve) => started.set(n, resolve));
      const before = performance.now();
      await put(mine, n);
      times.push((await start) - before);
    }
    return median(times);
  };
  await measure(0);
  const quietMs = await measure(PROBES);
  const flood = new Flood(s);
  flood.start();
  await until("the flood to be under way", () => flood.tookMs.length > OUTSTANDING_MIN, 60_000);
  const [seen, since] = [flood.tookMs.length, performance.now()];
  const floodedMs = await measure(2 * PROBES);
  const perSecond = ((flood.tookMs.length - seen) * 1_000) / (performance.now() - since);
  const ownMs = median(flood.tookMs);
  await flood.stop();
  console.log(
    `until a handler starts: ${quietMs.toFixed(1)} ms alone, ${floodedMs.toFixed(1)} ms beside ` +
      `${perSecond.toFixed(0)} calls a second, which take ${ownMs.toFixed(0)} ms each`,
  );
  expect(flood.failed).toBeNull();
  // A claim that queued behind these calls would take as long as they do. Both are measured in the same process and
  // the same seconds, so the speed of the machine does not matter.
  expect(floodedMs).toBeLessThan(ownMs / 2);
});
