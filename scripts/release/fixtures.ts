// npm run release:fixtures: cuts a release. Packs the source, keeps the tarball and a dump with live state for the upgrade
// tests, and freezes the migrations.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { startEmbedded } from "../../src/embedded/index.js";
import { schemaFiles } from "../../src/postgres/schema-files.js";
import { SCHEMA_VERSION } from "../../src/postgres/version.js";
import { manifest, repository } from "../../test/package/pack.js";
import { makeFixture } from "./fixture.js";
import { readLock, withRelease, writeLock } from "./lock.js";

const folder = join(repository, "test/upgrade/fixtures");
const { version } = manifest();
// Before anything is written: a version that was released, or a migration that was changed, ends it here.
const lock = withRelease(readLock(), version, await schemaFiles(), SCHEMA_VERSION);
const server = await startEmbedded();
try {
  const databases = ["live", "empty"].map((name) => Object.assign(new URL(server.url), { pathname: `/${name}` }).href);
  const client = new pg.Client(server.url);
  await client.connect();
  await client.query("create database live");
  await client.query("create database empty");
  await client.end();
  mkdirSync(folder, { recursive: true });
  const { tarball, dump } = await makeFixture(folder, databases as [string, string]);
  writeLock(lock);
  console.log(`${tarball}\n${dump}\nsrc/postgres/migrations.lock has ${version}. Commit all three.`);
} finally {
  await server.stop();
}
