import { describe, expect, onTestFinished, test } from "vitest";
import { task, type WorkerOptions } from "../../src/index.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";
import { openRealm } from "../roles/realm.js";

const job = task("job");
const handlers = [job.handle(() => 1)];

/** A logger that keeps what it warns of. */
function listening(): { warnings: string[]; logger: Parameters<typeof scene>[0] } {
  const warnings: string[] = [];
  const nothing = (): void => {};
  // A slow machine may give others reason to warn.
  const warn = (message: string): void => {
    if (message.includes("connections")) warnings.push(message);
  };
  return {
    warnings,
    logger: { logger: { debug: nothing, info: nothing, warn, error: nothing } },
  };
}

/** How many connections the server has for everybody. */
async function roomOf({ sql }: Scene): Promise<number> {
  const { rows } = await sql.query<{ n: number }>("select server_max - reserved as n from sluice.connections()");
  return rows[0]!.n;
}

const mayOpen = async ({ sql }: Scene): Promise<number[]> => {
  const { rows } = await sql.query<{ connections: number }>(
    "select connections from sluice.worker where name <> 'elsewhere' order by started_at",
  );
  return rows.map(({ connections }) => connections);
};

describe("a worker looks whether the server has room for its connections", () => {
  test("it registers what it may open; what the process shares counts once", async () => {
    const s = await scene();
    await s.worker({ handlers });
    await s.worker({ handlers });
    expect(await mayOpen(s)).toEqual([17, 10]);
  });

  test("whoever listens needs two for enqueue and queries, also where one is asked for", async () => {
    const s = await scene({ apiConnections: 1 });
    await s.worker({ handlers, handlerConnections: 1 });
    expect(await mayOpen(s)).toEqual([7]);
    const quiet = await scene({ apiConnections: 1, listen: false });
    await quiet.worker({ handlers, handlerConnections: 1 });
    expect(await mayOpen(quiet)).toEqual([6]);
  });

  test("a process never opens more than it says", async () => {
    const s = await scene();
    const job = task("job");
    const [full, counted] = [signal(), signal()];
    let inside = 0;
    const busy = job.handle((_, ctx) =>
      ctx.transaction(async () => {
        if (++inside === 6) full.resolve();
        await counted.promise;
      }),
    );
    await s.worker({ handlers: [busy] });
    await Promise.all(Array.from({ length: 30 }, () => s.sluice.enqueue(job)));
    await full.promise;
    await Promise.all(Array.from({ length: 30 }, () => s.sluice.counts()));
    const { rows } = await s.sql.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and application_name <> 'audit' and backend_type = 'client backend'`,
    );
    counted.resolve();
    expect(rows[0]!.n).toBeLessThanOrEqual(17);
    // And it does open them; only the second line that claims may not have been needed.
    expect(rows[0]!.n).toBeGreaterThanOrEqual(16);
    await until("all to end", async () => (await s.sluice.counts()).succeeded === 30);
  });

  test("what a setting leaves unused is not counted", async () => {
    const s = await scene();
    await s.worker({ handlers, handlerConnections: 1 });
    expect(await mayOpen(s)).toEqual([12]);
  });

  test("more than the server has at all is an error, and nothing is registered", async () => {
    const s = await scene();
    const room = await roomOf(s);
    const worker = s.sluice.worker({ handlers, dbConnections: room + 1 });
    await expect(worker.start()).rejects.toMatchObject({
      code: "connections_exceeded",
      message: expect.stringContaining(`may open ${room + 1} connections`) as string,
      details: { may: room + 1 },
    });
    expect(await mayOpen(s)).toEqual([]);
  });

  test("more than other workers leave is a warning, once, with the arithmetic", async () => {
    const { warnings, logger } = listening();
    const s = await scene(logger);
    const room = await roomOf(s);
    const others = "select sluice.register('elsewhere', '{}', 600000, 1, $1)";
    await s.sql.query(others, [room - 16]);
    await s.worker({ handlers });
    expect(warnings).toHaveLength(1);
    for (const part of [
      "may open 17 connections",
      `1 other worker may open ${room - 16}`,
      `17 + ${room - 16} = ${room + 1}`,
      `the server has ${room} (max_connections`,
    ])
      expect(warnings[0]).toContain(part);
  });

  test("through a pooler nobody counts: it is the pooler that opens connections", async () => {
    const { warnings, logger } = listening();
    const s = await scene({ ...logger, prepare: false });
    await s.worker({ handlers, dbConnections: (await roomOf(s)) + 1 });
    expect(warnings).toEqual([]);
  });

  test("a role that sees nothing of others counts them all the same", async () => {
    const realm = await openRealm("jobs");
    onTestFinished(() => realm.close());
    // Its five connections, at least, are of another role than the one that asks.
    const owner = await realm.connect("owner", { listen: false });
    await Promise.all(Array.from({ length: 5 }, () => owner.limits.list()));
    const [counted] = (await realm.sql(
      "worker",
      `select in_use, (select count(*)::int from pg_stat_activity where datname = current_database()) as here,
         (select count(*)::int from pg_stat_activity) as all from sluice.connections()`,
    )) as { in_use: number; here: number; all: number }[];
    expect(counted!.here).toBeGreaterThan(5);
    expect(counted!.in_use).toBeGreaterThanOrEqual(counted!.here);
    expect(counted!.in_use).toBeLessThanOrEqual(counted!.all);
  });
});

test.each<[string, Partial<WorkerOptions>, string]>([
  ["too few in all", { dbConnections: 11 }, "is 11, but 12 are needed: 2 to claim and settle"],
  ["too many loops", { claimLoops: 8 }, "8 to claim and settle + 1 to beat + 1 to keep"],
  ["too many for handlers", { handlerConnections: 7 }, "7 for transactions of handlers"],
])("%s: refused before anything is opened, with every summand", async (_, options, words) => {
  const s = await scene();
  const make = () => s.sluice.worker({ handlers, ...options });
  expect(make).toThrow(words);
  expect(make).toThrow(expect.objectContaining({ code: "invalid_option" }));
});

test("a preset of the worker's code decides loops, permits and connections", async () => {
  const s = await scene();
  const worker = await s.worker({ handlers, preset: "balanced" });
  expect(worker.status().permitsMax).toBe(5);
  expect(await mayOpen(s)).toEqual([15]);
});
