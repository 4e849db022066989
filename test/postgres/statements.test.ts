import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate } from "../../src/postgres/migrate.js";
import { allStatements, inSchema, type AnyStatement } from "../../src/postgres/statement.js";
import { connected, freshDatabase, type TestDatabase } from "../support/database.js";
import { filesBelow, partsOf, textOf } from "../tidy/source.js";
import { describeStatement } from "./describe.js";

const files = filesBelow("src/postgres", ".ts");
for (const file of files) await import(/* @vite-ignore */ new URL(`../../${file}`, import.meta.url).href);
const statements = allStatements();

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await freshDatabase({ migrated: true });
  client = new pg.Client(database.url);
  await client.connect();
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

/** What is wrong with a statement, or nothing. */
async function faultOf(s: AnyStatement, schema = "sluice"): Promise<string[]> {
  try {
    const found = await describeStatement(client, inSchema(s.text, schema));
    const same = (a: readonly string[], b: readonly string[]): boolean => a.join() === b.join();
    return [
      ...(same(found.params, s.params) ? [] : [`params are ${found.params.join(", ")}`]),
      ...(same(found.columns, s.columns) ? [] : [`columns are ${found.columns.join(", ")}`]),
    ];
  } catch (e) {
    return [`${(e as { code?: string }).code}: ${(e as Error).message}`];
  }
}

test("the statements of every file are registered, each under its own name", () => {
  expect(statements.length).toBeGreaterThan(20);
  const names = statements.map((s) => s.name);
  expect(names).toEqual([...new Set(names)]);
});

test.each(statements.map((s) => [s.name, s] as const))(
  "statement %s fits the schema with its text, parameters and columns",
  async (_, s) => expect(await faultOf(s)).toEqual([]),
);

describe("detection of wrong statements:", () => {
  const good = { name: "planted", text: "select id from sluice.ready where stream = $1" };
  const cases: [string, Partial<AnyStatement>, RegExp][] = [
    ["a table", { text: "select id from sluice.reedy where stream = $1" }, /42P01/],
    ["a column", { text: "select id from sluice.ready where streem = $1" }, /42703/],
    ["a function", { text: "select sluice.stepp($1) as id" }, /42883/],
    ["its syntax", { text: "select id form sluice.ready where stream = $1" }, /42601/],
    ["the type of a parameter", { params: ["int8"] }, /params are int4/],
    ["the number of parameters", { params: [] }, /params are int4/],
    ["the name of a column", { columns: ["task"] }, /columns are id/],
  ];
  test.each(cases)("a statement with a mistake is detected: %s", async (_, wrong, fault) => {
    const planted = { ...good, params: ["int4"], columns: ["id"], ...wrong };
    expect((await faultOf(planted)).join()).toMatch(fault);
  });

  test("a statement without a mistake passes", async () => {
    expect(await faultOf({ ...good, params: ["int4"], columns: ["id"] })).toEqual([]);
  });
});

test("every statement on the schema is registered", () => {
  const texts = new Set(statements.map((s) => s.text));
  // The migrations are their own check, and run before there is a schema to check against.
  const others = files.filter((file) => !/(migrate|install|lease|outside|rights)\.ts$/.test(file));
  const stray = others.flatMap((file) =>
    partsOf(textOf(file))
      .strings.filter((text) => /\bsluice\.\w+/.test(text) && /\s/.test(text) && !texts.has(text))
      .map((text) => `${file}: ${text.slice(0, 60)}`),
  );
  expect(stray).toEqual([]);
});

describe.each(["user", "order", "select"])("a schema named %s", (schema) => {
  beforeAll(async () => {
    await migrate(client, { schema, beside: (use) => connected(database.url, use) });
  });

  test("every statement fits the renamed schema", async () => {
    const faults = [];
    for (const s of statements) for (const fault of await faultOf(s, schema)) faults.push(`${s.name}: ${fault}`);
    expect(faults).toEqual([]);
  });

  test("no function of the renamed schema refers to the schema sluice", async () => {
    const { rows } = await client.query(
      "select proname from pg_proc where pronamespace = $1::regnamespace and prosrc ~ '\\msluice\\.|''sluice'''",
      [`"${schema}"`],
    );
    expect(rows).toEqual([]);
  });

  test("a task is enqueued, claimed and settled in the renamed schema", async () => {
    const run = async (text: string, values: unknown[] = []): Promise<unknown[]> => {
      const { rows } = await client.query({
        text: inSchema(text, schema),
        values,
        rowMode: "array",
      });
      return (rows as unknown[][])[0] ?? [];
    };
    const [limit] = await run("select sluice.declare_limit('tenant', 5, 2)");
    const [stream] = await run("select sluice.declare_contract('t', 'default', 0, 3, true, 'scope', false, $1, 9)", [
      [limit],
    ]);
    const [id] = await run(`select sluice.enqueue('t', '{"a": 1}', order_key => 'k', keys => '{"tenant": "x"}')`);
    const [worker] = await run("select sluice.register('w', $1, 60000, 10)", [[stream]]);
    const step = "select id from sluice.step($1, $2, $3, 5, $4, $5)";
    const [claimed] = await run(step, [worker, 1, [stream], null, null]);
    expect(claimed).toBe(id);
    await run("select sluice.set_limit('tenant', 3, null)");
    await run("select alive from sluice.beat($1, 5, 0, false)", [worker]);
    await run(step, [worker, 2, [stream], [id], [1]]);
    await run("select moved from sluice.due(10)");
    await run("select tasks from sluice.reap()");
    await run("select sluice.keep_lanes(10)");
    expect(await run("select state from sluice.task_state where id = $1", [id])).toEqual(["succeeded"]);
    expect(await run("select what from sluice.violation")).toEqual([]);
  });
});

test("a change of a limit in one schema does not block another schema", async () => {
  const beside = <T>(use: (client: pg.Client) => Promise<T>): Promise<T> => connected(database.url, use);
  for (const schema of ["user", "order"]) await migrate(client, { schema, beside });
  const other = new pg.Client(database.url);
  await other.connect();
  try {
    await other.query("begin");
    await other.query('select "user".barrier_exclusive()');
    await client.query("set lock_timeout = '2s'");
    await client.query('select "order".admit_dirty(1)');
    await expect(client.query(`set lock_timeout = '1ms'; select "user".admit_dirty(1)`)).rejects.toMatchObject({
      code: "55P03",
    });
  } finally {
    await other.end();
    await client.query("reset lock_timeout");
  }
});
