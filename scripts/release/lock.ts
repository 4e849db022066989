// migrations.lock: what every release has shipped. A migration that is in it is frozen; one that is not may be edited.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import type { SchemaFiles } from "../../src/postgres/schema-files.js";

/** What one release has shipped. */
export interface Release {
  /** Of the package. */
  readonly version: string;
  readonly schemaVersion: number;
  /** The digest of all functions and views. */
  readonly functions: string;
  /** The digests of the migrations that were new in this release, by name. */
  readonly migrations: Readonly<Record<string, string>>;
}

export interface Lock {
  readonly releases: readonly Release[];
}

const file = new URL("../../src/postgres/migrations.lock", import.meta.url);

export function readLock(): Lock {
  return JSON.parse(readFileSync(file, "utf8")) as Lock;
}

export function writeLock(lock: Lock): void {
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
}

/** The lock after a release of what the source has now. Refuses a version that was released before. */
export function withRelease(lock: Lock, version: string, schema: SchemaFiles, schemaVersion: number): Lock {
  if (lock.releases.some((release) => release.version === version))
    throw new Error(`${version} is already in migrations.lock: raise the version in package.json first`);
  const problems = lockProblems(lock, schema, schemaVersion);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const released = releasedMigrations(lock);
  const fresh = schema.migrations.filter(({ name }) => !released.has(name));
  const migrations = Object.fromEntries(fresh.map(({ name, digest }) => [name, digest]));
  const release = { version, schemaVersion, functions: functionsDigest(schema), migrations };
  return { releases: [...lock.releases, release] };
}

/** Everything in the source that would break databases of a released version. */
export function lockProblems(lock: Lock, schema: SchemaFiles, schemaVersion: number): string[] {
  return [
    ...frozenProblems(lock, schema),
    ...numberProblems(lock, schema),
    ...versionProblems(lock, schema, schemaVersion),
    ...schema.migrations.flatMap(({ name, outside }) =>
      (outside ?? [])
        .filter((text) => !REPEATABLE.test(text))
        .map((text) => `${name}: this statement is not repeatable: ${text}`),
    ),
  ];
}

// A migration outside a transaction runs again from its first statement after it was cut off.
const REPEATABLE = /^(create (unique )?index concurrently if not exists|drop index concurrently if exists) /;

function releasedMigrations({ releases }: Lock): Map<string, string> {
  return new Map(releases.flatMap(({ migrations }) => Object.entries(migrations)));
}

function frozenProblems(lock: Lock, { migrations }: SchemaFiles): string[] {
  const digests = new Map(migrations.map(({ name, digest }) => [name, digest]));
  return [...releasedMigrations(lock)].flatMap(([name, digest]) => {
    if (!digests.has(name)) return [`${name} was released and is missing: restore it`];
    return digests.get(name) === digest ? [] : [`${name} was released and has changed: restore it, add a migration`];
  });
}

/** Migrations are applied by number, so a new one comes after all released ones. */
function numberProblems(lock: Lock, { migrations }: SchemaFiles): string[] {
  const released = releasedMigrations(lock);
  const last = Math.max(0, ...[...released.keys()].map((name) => Number(name.slice(0, 4))));
  return migrations.flatMap(({ name, number }, at) => [
    ...(!released.has(name) && number <= last ? [`${name} is new: give it a number after ${last}`] : []),
    ...(migrations.some((other, before) => before < at && other.number === number)
      ? [`${name}: its number is taken`]
      : []),
  ]);
}

/** Processes of two releases tell whose functions are newer by the version alone. */
function versionProblems(lock: Lock, schema: SchemaFiles, schemaVersion: number): string[] {
  const last = lock.releases.at(-1);
  if (last === undefined || schemaVersion > last.schemaVersion) return [];
  if (schemaVersion < last.schemaVersion) return [`SCHEMA_VERSION was ${last.schemaVersion} in ${last.version}`];
  const released = releasedMigrations(lock);
  const changed = [
    ...schema.migrations.filter(({ name }) => !released.has(name)).map(({ name }) => name),
    ...(functionsDigest(schema) === last.functions ? [] : ["a function or view"]),
  ];
  return changed.map((what) => `${what} is new since ${last.version}: raise SCHEMA_VERSION above ${schemaVersion}`);
}

function functionsDigest({ routines }: SchemaFiles): string {
  const lines = routines.map(({ name, digest }) => `${name} ${digest}\n`);
  return createHash("sha256").update(lines.toSorted().join("")).digest("hex");
}
