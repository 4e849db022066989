import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import pg from "pg";
import { manifest, pack, repository } from "../../test/package/pack.js";
import { scratch } from "../../test/package/run.js";
import { spawnTs } from "../../test/support/process.js";
import { dumpSchema } from "./dump.js";

const run = promisify(execFile);
const DUMP_BYTES_MAX = 200_000;
const PLAN_BYTES_MAX = 10_000_000;

/** A released package, and a database that it left in the middle of work. */
export interface Fixture {
  readonly version: string;
  readonly tarball: string;
  readonly dump: string;
}

export function fixtureIn(folder: string, version: string): Fixture {
  const path = (ending: string): string => join(folder, `sluice-${version}.${ending}`);
  return { version, tarball: path("tgz"), dump: path("sql.gz") };
}

/** Packs the source and makes the dump. `databases`: two empty databases on one server. */
export async function makeFixture(folder: string, databases: readonly [string, string]): Promise<Fixture> {
  const fixture = fixtureIn(folder, manifest().version);
  const workshop = scratch();
  try {
    const packed = await pack(workshop.path);
    copyFileSync(packed.tarball, fixture.tarball);
    const dump = await dumpOf(await unpack(fixture.tarball, workshop.path), databases);
    if (dump.length > DUMP_BYTES_MAX) throw new Error(`the dump has ${dump.length} bytes, over ${DUMP_BYTES_MAX}`);
    writeFileSync(fixture.dump, dump);
    return fixture;
  } finally {
    workshop.remove();
  }
}

async function dumpOf(unpacked: Unpacked, [live, empty]: readonly [string, string]): Promise<Buffer> {
  const { exit, child } = spawnTs("test/upgrade/programs/live.ts", [unpacked.address, live]);
  let said = "";
  child.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()));
  if ((await exit) !== 0) throw new Error(`the program that creates live state failed:\n${said}`);
  const plan = ["migrate", "--plan", "--url", empty];
  const { stdout } = await run(process.execPath, [unpacked.program, ...plan], { maxBuffer: PLAN_BYTES_MAX });
  const client = new pg.Client(live);
  await client.connect();
  try {
    return await dumpSchema(client, stdout);
  } finally {
    await client.end();
  }
}

/** A package that can be imported and run. */
export interface Unpacked {
  readonly folder: string;
  /** What to import. */
  readonly address: string;
  /** The command `sluice`. */
  readonly program: string;
  remove(): void;
}

/** Unpacks a tarball; it finds its dependencies among ours. */
export async function unpack(tarball: string, below: string): Promise<Unpacked> {
  mkdirSync(below, { recursive: true });
  const folder = mkdtempSync(join(below, "unpacked-"));
  await run("tar", ["-xzf", tarball, "-C", folder]);
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"), "dir");
  return {
    folder,
    address: pathToFileURL(join(folder, "package/dist/index.js")).href,
    program: join(folder, "package/dist/cli/main.js"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
