import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { task } from "../../src/index.js";
import { testServer, testSluice } from "../../src/testing/index.js";
import { spawnTs } from "../support/process.js";
import { kit } from "./kit.js";

const url = process.env["SLUICE_TEST_URL"]!;
// PostgreSQL waits five seconds before it refuses to drop a database in use.
const LONG = { timeout: 120_000 };
let admin: pg.Client;

beforeAll(async () => {
  admin = new pg.Client(url);
  await admin.connect();
});

afterAll(async () => admin.end());

/** The databases whose names start with this prefix. */
async function databases(prefix: string): Promise<string[]> {
  const { rows } = await admin.query<{ name: string }>(
    "select datname as name from pg_database where starts_with(datname, $1) order by 1",
    [prefix],
  );
  return rows.map(({ name }) => name);
}

const nameOf = (address: string): string => new URL(address).pathname.slice(1);

test("every test kit has its own database, which close removes", async () => {
  const work = task("work");
  const [a, b] = await Promise.all([kit(), kit()]);
  await a.sluice.enqueue(work);
  expect([await a.enqueued(work), await b.enqueued(work)]).toMatchObject([[{ state: "ready" }], []]);
  const forgotten = new pg.Client(a.url);
  forgotten.on("error", () => {});
  await forgotten.connect();
  await Promise.all([a.close(), a.close()]);
  expect(await databases(nameOf(a.url))).toEqual([]);
  expect(await databases(nameOf(b.url))).toEqual([nameOf(b.url)]);
});

/**
 * A new role, which may create databases: other test files build templates and clean up on this server at the same
 * time, each among the databases of its own role. Databases that remain are dropped with the role.
 */
async function withRole(may: string, use: (url: string) => Promise<void>): Promise<void> {
  const role = `r_${randomBytes(6).toString("hex")}`;
  await admin.query(`create role ${role} login ${may} password 'secret'`);
  const address = new URL(url);
  [address.username, address.password] = [role, "secret"];
  try {
    await use(address.href);
  } finally {
    for (const one of await databasesOf(role)) await admin.query(`drop database ${one} with (force)`);
    await admin.query(`drop role ${role}`);
  }
}

async function databasesOf(role: string): Promise<string[]> {
  const { rows } = await admin.query<{ name: string }>(
    "select datname as name from pg_database where pg_get_userbyid(datdba) = $1 order by 1",
    [role],
  );
  return rows.map(({ name }) => name);
}

test("concurrent processes create one template database", LONG, () =>
  withRole("createdb", async (own) => {
    const all = Array.from({ length: 3 }, () => spawnTs("test/testing/programs/open.ts", [], { DATABASE_URL: own }));
    expect(await Promise.all(all.map((one) => one.exit))).toEqual([0, 0, 0]);
    expect(await databasesOf(new URL(own).username)).toEqual([
      expect.stringMatching(/^sluice_template_kit_[0-9a-f]{16}$/),
    ]);
  }),
);

test("databases of a killed process are removed after an hour unless they are in use", LONG, () =>
  withRole("createdb", async (own) => {
    const name = (ageMs: number): string =>
      `sluice_kit_${(Date.now() - ageMs).toString(36)}_${randomBytes(6).toString("hex")}`;
    const [old, used, young] = [name(3_700_000), name(3_700_000), name(60_000)];
    const owner = new pg.Client(own);
    await owner.connect();
    for (const one of [old, used, young]) await owner.query(`create database ${one}`);
    await owner.end();
    const address = new URL(own);
    address.pathname = `/${used}`;
    const user = new pg.Client(address.href);
    user.on("error", () => {});
    await user.connect();
    await (await kit({ url: own })).close();
    const left = await databasesOf(address.username);
    expect([old, used, young].map((one) => left.includes(one))).toEqual([false, true, true]);
    await user.end();
  }),
);

test("the test kit refuses a role that may not create databases", () =>
  withRole("nocreatedb", async (own) => {
    await expect(testSluice({ url: own })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("must be allowed to create databases"),
    });
  }));

test("the test kit reports an unreachable server as database_unavailable", async () => {
  await expect(testSluice({ url: "postgres://nobody@127.0.0.1:1/none" })).rejects.toMatchObject({
    code: "database_unavailable",
  });
});

test("processes of a run without DATABASE_URL share one embedded server", async () => {
  const server = await testServer();
  try {
    const env = { DATABASE_URL: undefined };
    const all = [1, 2].map(() => spawnTs("test/testing/programs/open.ts", [], env));
    const said = await Promise.all(all.map((one) => one.line(() => true)));
    expect(said).toEqual(said.map(() => `${new URL(server.url).host} 0`));
    expect(await Promise.all(all.map((one) => one.exit))).toEqual([0, 0]);
  } finally {
    await server.stop();
  }
});
