import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import pg from "pg";

export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  drop(): Promise<void>;
}

const postgres = new URL("../../src/postgres/", import.meta.url);
// Any number works, as long as all test processes use the same.
const templateLock = 7_318_006;

/** A database of its own for a test, empty or with the schema in place. */
export async function freshDatabase(options: { migrated?: boolean; encoding?: string } = {}): Promise<TestDatabase> {
  const name = `sluice_test_${randomBytes(8).toString("hex")}`;
  const template = options.migrated === true ? await migratedTemplate() : "template0";
  const as = options.encoding === undefined ? "" : ` encoding '${options.encoding}' locale 'C'`;
  await admin((client) => client.query(`create database ${name} template ${template}${as}`));
  return {
    name,
    url: urlOf(name),
    drop: () => admin(async (client) => void (await client.query(`drop database if exists ${name} with (force)`))),
  };
}

function serverUrl(): string {
  const url = process.env.SLUICE_TEST_URL;
  if (url === undefined) throw new Error("SLUICE_TEST_URL is not set: run the tests through vitest");
  return url;
}

function urlOf(database: string): string {
  const url = new URL(serverUrl());
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs a function with a connection of its own. */
export async function connected<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

function admin<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
  return connected(serverUrl(), use);
}

let template: Promise<string> | undefined;

function migratedTemplate(): Promise<string> {
  template ??= buildTemplate(`sluice_template_${schemaHash()}`);
  return template;
}

/** Test files run in parallel processes: the first one builds the template, the others reuse it. */
async function buildTemplate(name: string): Promise<string> {
  await admin(async (client) => {
    await client.query("select pg_advisory_lock($1)", [templateLock]);
    const found = await client.query("select from pg_database where datname = $1", [name]);
    if (found.rowCount === 0) await buildAside(client, name);
  });
  return name;
}

/** Builds it under another name first, so that an interrupted run leaves no partial template. */
async function buildAside(client: pg.Client, name: string): Promise<void> {
  const aside = `${name}_aside`;
  await client.query(`drop database if exists ${aside} with (force)`);
  await client.query(`create database ${aside} template template0`);
  const { migrate } = await import("../../src/postgres/migrate.js");
  const beside = <T>(use: (client: pg.Client) => Promise<T>): Promise<T> => connected(urlOf(aside), use);
  await beside((inside) => migrate(inside, { beside }));
  await client.query(`alter database ${aside} rename to ${name}`);
}

/** A template of another version of the schema must not be taken for this one. */
function schemaHash(): string {
  const hash = createHash("sha256");
  for (const file of ["migrate.ts", "install.ts", "schema-files.ts"])
    hash.update(readFileSync(new URL(file, postgres)));
  for (const room of ["migrations/", "functions/"]) {
    const folder = new URL(room, postgres);
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    for (const file of files.filter((path) => path.endsWith(".sql")).toSorted())
      hash.update(file).update(readFileSync(new URL(file, folder)));
  }
  return hash.digest("hex").slice(0, 16);
}
