import { expect, test } from "vitest";
import { lockProblems, readLock, withRelease, type Lock } from "../../scripts/release/lock.js";
import { migrationOf, schemaFiles, type SchemaFiles } from "../../src/postgres/schema-files.js";
import { SCHEMA_VERSION } from "../../src/postgres/version.js";

const first = migrationOf("0001_tables", "create table sluice.a ();");
const second = migrationOf("0002_more", "create table sluice.b ();");
const routine = { name: "f", kind: "function", sql: "", digest: "of f" } as const;
const schema: SchemaFiles = { migrations: [first], routines: [routine] };
const nothing: Lock = { releases: [] };
const released = withRelease(nothing, "0.1.0", schema, 1);

test("the source has every released migration unchanged and a high enough schema version", async () => {
  expect(lockProblems(readLock(), await schemaFiles(), SCHEMA_VERSION)).toEqual([]);
});

test("the release lock records the digests of the migrations and functions of a release", () => {
  expect(released.releases).toMatchObject([{ version: "0.1.0", schemaVersion: 1 }]);
  expect(released.releases[0]!.migrations).toEqual({ "0001_tables": first.digest });
  const next = withRelease(released, "0.2.0", { ...schema, migrations: [first, second] }, 2);
  expect(next.releases[1]!.migrations).toEqual({ "0002_more": second.digest });
});

test("a migration may be edited until it is released", () => {
  const edited = { ...schema, migrations: [migrationOf("0001_tables", "create table sluice.other ();")] };
  expect(lockProblems(nothing, edited, 1)).toEqual([]);
  expect(lockProblems(released, edited, 2)).toEqual([
    "0001_tables was released and has changed: restore it, add a migration",
  ]);
});

test("a missing released migration is reported as a problem", () => {
  expect(lockProblems(released, { ...schema, migrations: [] }, 2)).toEqual([
    "0001_tables was released and is missing: restore it",
  ]);
});

test("a new migration needs a higher SCHEMA_VERSION", () => {
  const more = { ...schema, migrations: [first, second] };
  expect(lockProblems(released, more, 1)).toEqual(["0002_more is new since 0.1.0: raise SCHEMA_VERSION above 1"]);
  expect(lockProblems(released, more, 2)).toEqual([]);
  expect(lockProblems(withRelease(released, "0.2.0", more, 2), more, 1)).toEqual(["SCHEMA_VERSION was 2 in 0.2.0"]);
});

test("a changed function needs a higher SCHEMA_VERSION", () => {
  const changed = { ...schema, routines: [{ ...routine, digest: "of another text" }] };
  expect(lockProblems(released, changed, 1)).toEqual([
    "a function or view is new since 0.1.0: raise SCHEMA_VERSION above 1",
  ]);
  expect(lockProblems(released, changed, 2)).toEqual([]);
});

test("a new migration comes after all released ones and has a unique number", () => {
  const early = migrationOf("0000_early", "");
  expect(lockProblems(released, { ...schema, migrations: [early, first] }, 2)).toEqual([
    "0000_early is new: give it a number after 1",
  ]);
  const twin = migrationOf("0002_twin", "");
  expect(lockProblems(released, { ...schema, migrations: [first, second, twin] }, 2)).toEqual([
    "0002_twin: its number is taken",
  ]);
});

test("a migration outside a transaction has only repeatable statements", () => {
  const outside = (sql: string) => ({
    ...schema,
    migrations: [first, migrationOf("0002_index", `-- outside a transaction\n${sql}`)],
  });
  const repeatable = `create unique index concurrently if not exists a_x on sluice.a (x);
    drop index concurrently if exists sluice.a_y;`;
  expect(lockProblems(released, outside(repeatable), 2)).toEqual([]);
  expect(lockProblems(released, outside("create index concurrently a_x on sluice.a (x);"), 2)).toEqual([
    "0002_index: this statement is not repeatable: create index concurrently a_x on sluice.a (x)",
  ]);
});

test("a version can be released only once", () => {
  expect(() => withRelease(released, "0.1.0", schema, 1)).toThrow("raise the version in package.json first");
});
