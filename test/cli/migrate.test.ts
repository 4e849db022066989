import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import pg from "pg";
import { SCHEMA_VERSION } from "../../src/postgres/version.js";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { sluice } from "./run.js";

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

async function versionOf(schema: string): Promise<number> {
  const client = new pg.Client(database.url);
  await client.connect();
  const { rows } = await client.query<{ n: number }>(`select version as n from ${schema}.compatibility`);
  await client.end();
  return rows[0]!.n;
}

describe("sluice migrate", () => {
  test("creates the schema and then reports it as up to date", async () => {
    const first = await sluice(["migrate", "--url", database.url]);
    expect(first).toMatchObject({ code: 0, err: "" });
    const version = await versionOf("sluice");
    expect(first.out).toMatch(/^applied 0001_tables\n/);
    expect(first.out).toContain(`done: schema sluice is now at version ${version}\n`);
    const again = await sluice(["migrate"], { DATABASE_URL: database.url });
    expect(again).toEqual({
      code: 0,
      out: `up to date: schema sluice is at version ${version}\n`,
      err: "",
    });
  });

  test("fails with --check while a migration is missing, and prints the missing SQL with --plan", async () => {
    const args = ["migrate", "--url", database.url, "--schema", "planned"];
    const before = await sluice([...args, "--check"]);
    expect(before).toMatchObject({ code: 1, err: "" });
    expect(before.out).toContain("missing: migration 0001_tables\n");
    const { out: script } = await sluice([...args, "--plan"]);
    expect(script).toContain('create table "planned".task (');
    expect(script).toContain('create or replace function "planned".step(');
    // Neither command has created anything.
    expect((await sluice([...args, "--check"])).code).toBe(1);
    expect((await sluice(args)).code).toBe(0);
    const after = await sluice([...args, "--check", "--json"]);
    expect(after.code).toBe(0);
    expect(JSON.parse(after.out)).toMatchObject({ applied: [], installed: [] });
  });

  test("applies each migration once when three processes run it concurrently", async () => {
    const args = ["migrate", "--url", database.url, "--schema", "at_once", "--json"];
    const all = await Promise.all(Array.from({ length: 3 }, () => sluice(args)));
    const reports = all.map(({ out }) => JSON.parse(out) as { applied: string[]; version: number });
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(reports.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
    const version = await versionOf("at_once");
    expect(reports.every((report) => report.version === version)).toBe(true);
  });

  test("reads the database and the schema from the config file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-migrate-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "sluice.toml");
    writeFileSync(file, `[client]\nurl = "${database.url}"\nschema = "in_file"`);
    const env = { SLUICE_CONFIG: file };
    expect(JSON.parse((await sluice(["migrate", "--json"], env)).out)).toMatchObject({
      schema: "in_file",
      version: await versionOf("in_file"),
    });
    const other = await sluice(["migrate", "--json", "--schema", "by_flag"], env);
    expect(JSON.parse(other.out)).toMatchObject({ schema: "by_flag" });
  });

  const nowhere = "postgres://127.0.0.1:1/x";
  test.each<[string, number, string[], NodeJS.ProcessEnv]>([
    ["missing_url", 2, [], {}],
    ["missing_url", 2, [], { DATABASE_URL: "" }],
    ["invalid_option", 2, ["--url", "localhost"], {}],
    ["invalid_option", 2, ["--schema", "a; drop"], { DATABASE_URL: nowhere }],
    ["database_unavailable", 1, ["--url", nowhere], {}],
  ])("reports %s and exits with %i", async (code, exit, args, env) => {
    const said = await sluice(["migrate", ...args], env);
    expect(said).toMatchObject({ code: exit, out: "" });
    expect(said.err).toMatch(new RegExp(`^error ${code}: .+\n$`));
  });

  test("says which option to pass if no database is given", async () => {
    const { err } = await sluice(["migrate"]);
    expect(err).toMatch(/--url postgres:\/\/.*DATABASE_URL/);
    expect(err).not.toMatch(/pool|embedded/);
  });

  test("prints errors as JSON with --json", async () => {
    const { code, out, err } = await sluice(["migrate", "--json"]);
    expect([code, out]).toEqual([2, ""]);
    expect(JSON.parse(err)).toEqual({
      error: { code: "missing_url", message: expect.any(String) as string },
    });
  });
});

describe("sluice", () => {
  test("prints help for the program and for a command", async () => {
    const one = await sluice(["migrate", "--help"]);
    expect(one).toMatchObject({ code: 0, err: "" });
    for (const word of ["--url", "--schema", "--json", "DATABASE_URL", "Examples:"]) {
      expect(one.out).toContain(word);
    }
    expect(one.out).toContain(`"version":${SCHEMA_VERSION},`);
  });

  test("prints its version, and exits with 2 on wrong usage", async () => {
    const [version, unknown, option, none] = await Promise.all([
      sluice(["--version"]),
      sluice(["migrat"]),
      sluice(["migrate", "--shema", "x"]),
      sluice([]),
    ]);
    expect(version).toMatchObject({ code: 0, err: "" });
    expect(version.out).toMatch(/^\d+\.\d+\.\d+/);
    expect(unknown).toMatchObject({ code: 2, out: "" });
    expect(unknown.err).toContain("Did you mean migrate?");
    expect(option).toMatchObject({ code: 2, out: "" });
    expect(option.err).toContain("--schema");
    expect(none).toMatchObject({ code: 2, out: "" });
    expect(none.err).toMatch(/Usage: sluice[^]*migrate[^]*Exit codes:/);
  });
});
