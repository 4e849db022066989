import { drizzle } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import { knex as openKnex } from "knex";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { task, type, type Queryable } from "../../src/index.js";
import { fromDrizzle, fromKnex, fromKysely, fromPostgresJs, fromPrisma } from "../../src/tx/index.js";
import { codeOf, openHouse, refused, type House } from "../client/house.js";

const note = task("note", { input: type<string>() });
let house: House;
let pool: pg.Pool;
let sql: postgres.Sql;
let db: ReturnType<typeof drizzle>;
let db2: ReturnType<typeof drizzleOnPostgresJs>;
let kysely: Kysely<unknown>;
let knex: ReturnType<typeof openKnex>;

beforeAll(async () => {
  house = await openHouse();
  pool = new pg.Pool({ connectionString: house.url, max: 2 });
  pool.on("error", () => {});
  sql = postgres(house.url, { max: 2, onnotice: () => {} });
  db = drizzle(pool);
  db2 = drizzleOnPostgresJs(sql);
  kysely = new Kysely({ dialect: new PostgresDialect({ pool }) });
  knex = openKnex({ client: "pg", connection: house.url, pool: { min: 0, max: 2 } });
});
afterAll(async () => {
  await Promise.all([pool.end(), sql.end(), knex.destroy()]);
  await house.close();
});

const enqueue = (tx: Queryable, input = "x") => house.sluice.enqueue(note, input, { tx });
const texts = async (): Promise<unknown[]> =>
  (await house.sql<{ input: unknown }>("select input from sluice.task order by id")).map((row) => row.input);

describe("an argument that is not a transaction", () => {
  test("is refused by the compiler and by the adapter", async () => {
    const attempts: (() => Queryable)[] = [
      // @ts-expect-error sql is a pool
      () => fromPostgresJs(sql),
      // @ts-expect-error db is a pool
      () => fromDrizzle(db),
      // @ts-expect-error db2 is a pool
      () => fromDrizzle(db2),
      // @ts-expect-error kysely is a pool
      () => fromKysely(kysely),
      // @ts-expect-error knex is a pool
      () => fromKnex(knex),
    ];
    for (const attempt of attempts) expect(await codeOf(attempt)).toBe("invalid_option");
  });

  test.each([null, undefined, {}, "tx", 5])("such as %j is refused by every adapter", async (nothing) => {
    for (const from of [fromPostgresJs, fromDrizzle, fromKysely, fromKnex, fromPrisma]) {
      expect(await codeOf(() => from(nothing as never))).toBe("invalid_option");
    }
  });
});

test("a transaction without its adapter is refused before anything is sent", async () => {
  const bare = (tx: unknown) => refused(house, "invalid_option", () => enqueue(tx as Queryable));
  await sql.begin(bare);
  await db.transaction(bare);
  await db2.transaction(bare);
  await kysely.transaction().execute(bare);
  await knex.transaction(bare);
});

describe("a transaction that has ended", () => {
  test("of Drizzle on node-postgres is refused", async () => {
    const tx = await db.transaction((t) => Promise.resolve(fromDrizzle(t)));
    await refused(house, "invalid_option", () => enqueue(tx));
  });

  test("of Knex is refused", async () => {
    const tx = await knex.transaction((trx) => Promise.resolve(fromKnex(trx)));
    await refused(house, "invalid_option", () => enqueue(tx));
    const trx = await knex.transaction();
    await trx.rollback();
    await refused(house, "invalid_option", () => enqueue(fromKnex(trx)));
  });

  test("of Kysely is refused", async () => {
    const tx = await kysely.transaction().execute((trx) => Promise.resolve(fromKysely(trx)));
    await refused(house, "invalid_option", () => enqueue(tx));
    let kept: Queryable;
    const failing = kysely.transaction().execute((trx) => {
      kept = fromKysely(trx);
      return Promise.reject(new Error("rolled back"));
    });
    await expect(failing).rejects.toThrow("rolled back");
    await refused(house, "invalid_option", () => enqueue(kept));
  });

  test("that was started with Kysely's startTransaction is refused", async () => {
    const trx = await kysely.startTransaction().execute();
    await enqueue(fromKysely(trx), "started");
    await trx.commit().execute();
    expect(await texts()).toContain("started");
    await refused(house, "invalid_option", () => enqueue(fromKysely(trx)));
    const other = await kysely.startTransaction().execute();
    await other.rollback().execute();
    await refused(house, "invalid_option", () => enqueue(fromKysely(other)));
  });

  // The page documents this and says to await. If a library starts to report it, the page can promise more.
  test("of postgres.js, alone or under Drizzle, is not detected, and its task commits on its own", async () => {
    const ended: [string, Queryable][] = [
      ["postgres.js", await sql.begin((t) => fromPostgresJs(t))],
      ["Drizzle", await db2.transaction((t) => Promise.resolve(fromDrizzle(t)))],
    ];
    for (const [name, tx] of ended) await enqueue(tx, `late ${name}`);
    expect(await texts()).toEqual(expect.arrayContaining(ended.map(([name]) => `late ${name}`)));
  });
});

describe("a savepoint that is rolled back loses only its own task", () => {
  const oops = new Error("only the inner one");
  const both = async (name: string, outer: Queryable, inner: () => Promise<unknown>) => {
    await enqueue(outer, `${name}: kept`);
    await expect(inner()).rejects.toBe(oops);
  };
  const lose = async (name: string, tx: Queryable): Promise<never> => {
    await enqueue(tx, `${name}: lost`);
    throw oops;
  };
  const onlyKept = async (name: string) =>
    expect((await texts()).filter((t) => String(t).startsWith(name))).toEqual([`${name}: kept`]);

  test("with postgres.js", async () => {
    await sql.begin((tx) => both("a", fromPostgresJs(tx), () => tx.savepoint((sp) => lose("a", fromPostgresJs(sp)))));
    await onlyKept("a");
  });

  test("with Drizzle", async () => {
    await db.transaction((tx) => both("b", fromDrizzle(tx), () => tx.transaction((sp) => lose("b", fromDrizzle(sp)))));
    await db2.transaction((tx) => both("c", fromDrizzle(tx), () => tx.transaction((sp) => lose("c", fromDrizzle(sp)))));
    await onlyKept("b");
    await onlyKept("c");
  });

  test("with Knex", async () => {
    await knex.transaction((trx) => both("d", fromKnex(trx), () => trx.transaction((sp) => lose("d", fromKnex(sp)))));
    await onlyKept("d");
  });

  test("with Kysely", async () => {
    const trx = await kysely.startTransaction().execute();
    await enqueue(fromKysely(trx), "e: kept");
    const sp = await trx.savepoint("inner").execute();
    await enqueue(fromKysely(sp), "e: lost");
    await sp.rollbackToSavepoint("inner").execute();
    await trx.commit().execute();
    await onlyKept("e");
  });
});
