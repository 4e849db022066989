import dns from "node:dns";
import { createServer, type AddressInfo } from "node:net";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { limit, Sluice, task, type, type ConnectOptions, type SluiceError } from "../../src/index.js";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { codeOf } from "./house.js";

const echo = task("echo", { input: type<string>() });
let database: TestDatabase;
let open: Sluice[];
// A schema per test: faster than a database per test, and none of them is the default one.
let schema: string;
let tests = 0;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());
beforeEach(() => {
  vi.stubEnv("DATABASE_URL", undefined);
  schema = `test_${++tests}`;
  open = [];
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(open.map((sluice) => sluice.close()));
});

async function connect(options: ConnectOptions = {}): Promise<Sluice> {
  const sluice = await Sluice.connect({ url: database.url, schema, ...options });
  open.push(sluice);
  return sluice;
}

/** Rows of a query in which "sluice." stands for the schema. */
async function sql(text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(database.url);
  await client.connect();
  try {
    const { rows } = await client.query(text.replaceAll("sluice.", `"${schema}".`));
    return rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

/** One task through a worker of this Sluice. */
async function roundTrip(sluice: Sluice, text = "hello"): Promise<unknown> {
  const worker = sluice.worker({ handlers: [echo.handle((input) => input)], pollIntervalMs: 20 });
  await worker.start();
  const result = await (await sluice.enqueue(echo, text)).result({ timeoutMs: 10_000 });
  await worker.stop();
  return result;
}

describe("the address of the database", () => {
  test("connect() without an address fails with missing_url", async () => {
    expect(await codeOf(() => Sluice.connect())).toBe("missing_url");
    expect(await codeOf(() => Sluice.connect({ embedded: false, listen: false }))).toBe("missing_url");
    vi.stubEnv("DATABASE_URL", "");
    expect(await codeOf(() => Sluice.connect())).toBe("missing_url");
    expect(await codeOf(() => Sluice.connect({ url: "" }))).toBe("missing_url");
  });

  test("connect() uses DATABASE_URL if no address is given", async () => {
    vi.stubEnv("DATABASE_URL", database.url);
    const sluice = await connect({ url: undefined as never });
    expect(await roundTrip(sluice)).toBe("hello");
  });

  test("connect() prefers a given address to DATABASE_URL", async () => {
    vi.stubEnv("DATABASE_URL", "postgres://127.0.0.1:1/nowhere");
    expect(await roundTrip(await connect())).toBe("hello");
  });

  test("connect() to a wrong address fails quickly, without the password in the error", async () => {
    const there = new URL(database.url);
    const closed = await closedPort();
    // The resolver is mocked, since its delay is out of our control.
    const real = dns.lookup;
    const lookup = vi.spyOn(dns, "lookup").mockImplementation(((
      name: string,
      options: dns.LookupOptions,
      answer: (e: Error | null) => void,
    ) => {
      if (name !== "nobody.invalid") return real(name, options, answer);
      const e = Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND" });
      process.nextTick(answer, e);
    }) as typeof dns.lookup);
    for (const change of [
      (url: URL) => (url.port = String(closed)),
      (url: URL) => (url.pathname = "/no_such_database"),
      (url: URL) => (url.hostname = "nobody.invalid"),
    ]) {
      const url = new URL(there);
      url.password = "the-secret";
      change(url);
      const began = performance.now();
      const failure = await Sluice.connect({ url: url.href }).catch((e: unknown) => e);
      expect(failure).toMatchObject({ code: "database_unavailable" });
      expect(String(failure)).not.toContain("the-secret");
      expect(performance.now() - began).toBeLessThan(5_000);
    }
    expect(lookup.mock.lastCall?.[0]).toBe("nobody.invalid");
  });

  test("connect() reports the SQLSTATE if the server refuses the address, and none during an outage", async () => {
    const [missing, down] = [new URL(database.url), new URL(database.url)];
    missing.pathname = "/no_such_database";
    down.port = String(await closedPort());
    const detailsOf = (url: URL): Promise<unknown> =>
      Sluice.connect({ url: url.href }).catch((e: unknown) => (e as SluiceError).details);
    expect(await detailsOf(missing)).toEqual({ sqlstate: "3D000" });
    expect(await detailsOf(down)).toBeUndefined();
  });

  test("connect() refuses a malformed address without repeating it in the error", async () => {
    for (const url of ["localhost:5432", "http://me:the-secret@x/y", "postgres:/x", "x"]) {
      const failure = await Sluice.connect({ url }).catch((e: unknown) => e);
      expect(failure).toMatchObject({ code: "invalid_option" });
      expect(String(failure)).not.toContain("the-secret");
    }
    const noPort = "postgres://127.0.0.1:99999/x";
    expect(await codeOf(() => Sluice.connect({ url: noPort }))).toBe("database_unavailable");
  });

  test("connect() uses the caller's pool and leaves it open", async () => {
    // In parts, because pg hides the password property from copies of the pool's options.
    const { hostname, port, username, password, pathname } = new URL(database.url);
    const pool = new pg.Pool({
      host: hostname,
      port: Number(port),
      user: username,
      password,
      database: pathname.slice(1),
    });
    pool.on("error", () => {});
    const sluice = await Sluice.connect({ pool, schema });
    expect(await roundTrip(sluice)).toBe("hello");
    await sluice.close();
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });
});

test("application_name comes from the address, or is sluice", async () => {
  const named = async (): Promise<unknown[]> => {
    const rows = await sql(
      "select distinct application_name from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' order by 1",
    );
    return rows.map((row) => row["application_name"]);
  };
  const sluice = await connect();
  const worker = sluice.worker({ handlers: [echo.handle((input) => input)] });
  await worker.start();
  expect(await named()).toEqual(["sluice"]);
  await sluice.close();
  await expect.poll(named).toEqual([]);
  const url = new URL(database.url);
  url.searchParams.set("application_name", "shop");
  await connect({ url: url.href });
  expect(await named()).toEqual(["shop"]);
});

test("enqueues in transactions do not deadlock when the transactions use all connections of the pool", async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });
  pool.on("error", () => {});
  const sluice = await connect({ pool });
  const tx = [await pool.connect(), await pool.connect()];
  for (const client of tx) await client.query("begin");
  await Promise.all(tx.map((client) => sluice.enqueue(echo, "x", { tx: client })));
  for (const client of tx) await client.query("commit");
  for (const client of tx) client.release();
  expect((await sluice.counts()).ready).toBe(2);
  await sluice.close();
  await pool.end();
});

test("connect() refuses a database with another default isolation level", async () => {
  const strict = await freshDatabase();
  const client = new pg.Client(strict.url);
  await client.connect();
  await client.query(`alter database ${strict.name} set default_transaction_isolation = 'repeatable read'`);
  await client.end();
  const refusal = Sluice.connect({ url: strict.url });
  await expect(refusal).rejects.toMatchObject({
    code: "isolation_level",
    message: expect.stringMatching(/alter role ".+" set default_transaction_isolation/) as string,
  });
  await strict.drop();
});

describe("connect() without optional features", () => {
  test("a worker without LISTEN finds its tasks by polling", async () => {
    expect(await roundTrip(await connect({ listen: false }))).toBe("hello");
  });

  test("a client without named statements works", async () => {
    expect(await roundTrip(await connect({ prepare: false }))).toBe("hello");
  });
});

describe("close()", () => {
  test("close() may be called twice, and leaves no connection", async () => {
    const sluice = await connect();
    await roundTrip(sluice);
    await Promise.all([sluice.close(), sluice.close()]);
    await sluice.close();
    const others = "datname = current_database() and pid <> pg_backend_pid()";
    const client = "backend_type = 'client backend'";
    await expect.poll(() => sql(`select query from pg_stat_activity where ${others} and ${client}`)).toEqual([]);
  });

  test("close() stops running workers", async () => {
    const sluice = await connect();
    const worker = sluice.worker({ handlers: [echo.handle((input) => input)] });
    await worker.start();
    await sluice.close();
    expect(await codeOf(() => worker.start())).toBe("stopped");
    expect(await sql("select id from sluice.worker")).toEqual([]);
  });
});

describe("migrations at connect()", () => {
  test("ten concurrent connects apply each migration once, and none fails", async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => connect({ listen: false })));
    expect(all).toHaveLength(10);
    const rows = await sql("select number from sluice.migration order by number");
    expect(rows.map((row) => row["number"])).toEqual(rows.map((_, i) => i + 1));
    expect(await sql("select count(*)::int n from sluice.setting")).toEqual([{ n: 1 }]);
  });

  test("connect() with migrate: false runs no migration and reports a missing schema", async () => {
    expect(await codeOf(() => connect({ migrate: false }))).toBe("schema_missing");
    expect(await sql(`select from pg_namespace where nspname = '${schema}'`)).toEqual([]);
    await connect();
    expect(await roundTrip(await connect({ migrate: false }))).toBe("hello");
  });

  test("connect() with migrate: false reports an older schema", async () => {
    await connect();
    await sql("update sluice.compatibility set version = version - 1");
    expect(await codeOf(() => connect({ migrate: false }))).toBe("schema_older");
  });

  test.each([true, false])(
    "an older library connects to a newer schema if compatible_from allows it, else is refused (migrate: %s)",
    async (migrate) => {
      await connect();
      await sql("update sluice.compatibility set version = 9999");
      expect(await roundTrip(await connect({ migrate }))).toBe("hello");
      await sql("update sluice.compatibility set compatible_from = 9999");
      expect(await codeOf(() => connect({ migrate }))).toBe("schema_newer");
      expect(await sql("select version from sluice.compatibility")).toEqual([{ version: 9999 }]);
    },
  );
});

describe("the name of the schema", () => {
  test.each(["user", "order", "a".repeat(48)])("the schema may be named %s", async (name) => {
    const told = vi.spyOn(console, "error");
    schema = name;
    const sluice = await connect();
    const mail = limit("mail", { total: 2 });
    const all = task("all", {
      input: type<string>(),
      concurrency: 3,
      order: (key) => key,
      limits: [mail, limit("tenant", { perKey: 1 }).for((key: string) => key)],
    });
    const worker = sluice.worker({ handlers: [all.handle((key) => key)], pollIntervalMs: 20 });
    await worker.start();
    const handle = await sluice.enqueue(all, "a", { idempotencyKey: "k", group: "g" });
    expect(await handle.result({ timeoutMs: 10_000 })).toBe("a");
    await sluice.limits.set(mail, { total: 0 });
    const held = await sluice.enqueue(all, "b");
    await sluice.pause("default");
    expect(await held.cancel()).toBe("cancelled");
    expect(await sluice.retry(held.id)).toBe(true);
    expect(await sql("select from pg_namespace where nspname = 'sluice'")).toEqual([]);
    expect(await sql("select * from sluice.violation")).toEqual([]);
    await worker.stop();
    expect(told).not.toHaveBeenCalled();
  });

  test("two schemas in one database are independent", async () => {
    const one = await connect({ schema: "one" });
    const two = await connect({ schema: "two" });
    const mail = limit("mail", { total: 1 });
    await Promise.all([one.sync([mail]), two.sync([mail])]);
    await one.limits.set("mail", { total: 5 });
    expect((await two.limits.get("mail")).total).toBe(1);
    await two.enqueue(echo, "for two", { idempotencyKey: "k" });
    const mine = await one.enqueue(echo, "for one", { idempotencyKey: "k" });
    expect(mine.existed).toBe(false);
    await two.pause("default");
    expect(await roundTrip(one, "again")).toBe("again");
    expect(await mine.result({ timeoutMs: 10_000 })).toBe("for one");
    expect(await one.counts()).toMatchObject({ succeeded: 2, ready: 0 });
    expect(await two.counts()).toMatchObject({ succeeded: 0, ready: 1 });
  });
});

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
