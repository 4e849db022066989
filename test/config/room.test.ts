import { describe, expect, onTestFinished, test } from "vitest";
import { task, type WorkerOptions } from "../../src/index.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";
import { openRealm } from "../roles/realm.js";

const job = task("job");
const handlers = [job.handle(() => 1)];

/** A logger that keeps warnings about connections. */
function listening(): { warnings: string[]; logger: Parameters<typeof scene>[0] } {
  const warnings: string[] = [];
  const nothing = (): void => {};
  // A slow machine may cause other warnings.
  const warn = (message: string): void => {
    if (message.includes("connections")) warnings.push(message);
  };
  return {
    warnings,
    logger: { logger: { debug: nothing, info: nothing, warn, error: nothing } },
  };
}

/** The number of unreserved connections of the server. */
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

describe("the connection check at worker start", () => {
  test("registers the connections a worker may open and counts shared ones once per process", async () => {
    const s = await scene();
    await s.worker({ handlers });
    await s.worker({ handlers });
    expect(await mayOpen(s)).toEqual([17, 10]);
  });

  test("counts two connections for enqueues and queries if the client listens, even if one is configured", async () => {
    const s = await scene({ apiConnections: 1 });
    await s.worker({ handlers, handlerConnections: 1 });
    expect(await mayOpen(s)).toEqual([7]);
    const quiet = await scene({ apiConnections: 1, listen: false });
    await quiet.worker({ handlers, handlerConnections: 1 });
    expect(await mayOpen(quiet)).toEqual([6]);
  });

  test("registers at least as many connections as the process opens", async () => {
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
    // The process opens them all, except that the second claim connection may stay unused.
    expect(rows[0]!.n).toBeGreaterThanOrEqual(16);
    await until("all to end", async () => (await s.sluice.counts()).succeeded === 30);
  });

  test("does not count connections that a setting leaves unused", async () => {
    const s = await scene();
    await s.worker({ handlers, handlerConnections: 1 });
    expect(await mayOpen(s)).toEqual([12]);
  });

  test("rejects a worker that may open more connections than the server has, and registers nothing", async () => {
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

  test("warns once, with the arithmetic, if other workers leave too few connections", async () => {
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
      `the server allows ${room} (max_connections`,
    ])
      expect(warnings[0]).toContain(part);
  });

  test("is skipped behind a pooler, which opens the server connections", async () => {
    const { warnings, logger } = listening();
    const s = await scene({ ...logger, prepare: false });
    await s.worker({ handlers, dbConnections: (await roomOf(s)) + 1 });
    expect(warnings).toEqual([]);
  });

  test("counts the connections of other roles even if it cannot see their activity", async () => {
    const realm = await openRealm("jobs");
    onTestFinished(() => realm.close());
    // At least its five connections belong to another role than the one that queries.
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
  ["too few connections in total", { dbConnections: 11 }, "is 11, but 12 are needed: 2 to claim and settle"],
  ["too many claim loops", { claimLoops: 8 }, "8 to claim and settle + 1 for heartbeats + 1 for the keeper"],
  ["too many connections for handlers", { handlerConnections: 7 }, "7 for handler transactions"],
])("a worker with %s is refused before a connection opens, with every summand", async (_, options, words) => {
  const s = await scene();
  const make = () => s.sluice.worker({ handlers, ...options });
  expect(make).toThrow(words);
  expect(make).toThrow(expect.objectContaining({ code: "invalid_option" }));
});

test("a preset in code sets claim loops, permits and connections of the worker", async () => {
  const s = await scene();
  const worker = await s.worker({ handlers, preset: "balanced" });
  expect(worker.status().permitsMax).toBe(5);
  expect(await mayOpen(s)).toEqual([15]);
});
