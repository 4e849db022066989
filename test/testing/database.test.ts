import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { task } from "../../src/index.js";
import { testServer, testSluice } from "../../src/testing/index.js";
import { spawnTs } from "../support/process.js";
import { kit } from "./kit.js";

const url = process.env["SLUICE_TEST_URL"]!;
let admin: pg.Client;

beforeAll(async () => {
  admin = new pg.Client(url);
  await admin.connect();
});

afterAll(async () => admin.end());

/** The databases whose names begin so. */
async function databases(prefix: string): Promise<string[]> {
  const { rows } = await admin.query<{ name: string }>(
    "select datname as name from pg_database where starts_with(datname, $1) order by 1",
    [prefix],
  );
  return rows.map(({ name }) => name);
}

const nameOf = (address: string): string => new URL(address).pathname.slice(1);
const someSchema = (): string => `s_${randomBytes(6).toString("hex")}`;

test("every test has a database of its own, and none of it is left after close", async () => {
  const work = task("work");
  const [a, b] = await Promise.all([kit(), kit()]);
  await a.sluice.enqueue(work);
  expect([await a.enqueued(work), await b.enqueued(work)]).toMatchObject([
    [{ state: "ready" }],
    [],
  ]);
  const forgotten = new pg.Client(a.url);
  forgotten.on("error", () => {});
  await forgotten.connect();
  await Promise.all([a.close(), a.close()]);
  expect(await databases(nameOf(a.url))).toEqual([]);
  expect(await databases(nameOf(b.url))).toEqual([nameOf(b.url)]);
});

test("processes that begin at once make one template between them", async () => {
  await kit();
  const before = await databases("sluice_template_kit_");
  const schema = someSchema();
  const all = Array.from({ length: 3 }, () =>
    spawnTs("test/testing/programs/open.ts", [schema], { DATABASE_URL: url }),
  );
  expect(await Promise.all(all.map((one) => one.exit))).toEqual([0, 0, 0]);
  const made = (await databases("sluice_template_kit_")).filter((name) => !before.includes(name));
  expect(made).toHaveLength(1);
  await admin.query(`drop database ${made[0]!}`);
});

test("what a killed process left behind goes after an hour, unless somebody uses it", async () => {
  const name = (ageMs: number): string =>
    `sluice_kit_${(Date.now() - ageMs).toString(36)}_${randomBytes(6).toString("hex")}`;
  const [old, used, young] = [name(3_700_000), name(3_700_000), name(60_000)];
  for (const one of [old, used, young]) await admin.query(`create database ${one}`);
  const address = new URL(url);
  address.pathname = `/${used}`;
  const user = new pg.Client(address.href);
  await user.connect();
  const schema = someSchema();
  await kit();
  const before = await databases("sluice_template_kit_");
  await kit({ schema });
  const left = await databases("sluice_kit_");
  expect([old, used, young].map((one) => left.includes(one))).toEqual([false, true, true]);
  // While it is in use nobody else drops it: other files clean up on this server at the same time.
  user.on("error", () => {});
  for (const one of [used, young]) await admin.query(`drop database ${one} with (force)`);
  const after = await databases("sluice_template_kit_");
  for (const one of after.filter((n) => !before.includes(n)))
    await admin.query(`drop database ${one}`);
});

test("a role that may not create databases is told so", async () => {
  const role = `r_${randomBytes(6).toString("hex")}`;
  await admin.query(`create role ${role} login password 'secret'`);
  const address = new URL(url);
  [address.username, address.password] = [role, "secret"];
  await expect(testSluice({ url: address.href })).rejects.toMatchObject({
    code: "invalid_option",
    message: expect.stringContaining("may create databases"),
  });
  await admin.query(`drop role ${role}`);
});

test("a server that is not there is told so", async () => {
  await expect(testSluice({ url: "postgres://nobody@127.0.0.1:1/none" })).rejects.toMatchObject({
    code: "database_unavailable",
  });
});

test("without a DATABASE_URL the processes of a run share one server that the kit starts", async () => {
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
