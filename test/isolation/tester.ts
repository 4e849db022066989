import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import pg from "pg";
import { surveySite } from "../../src/embedded/site.js";
import { mutate, type Mutation } from "../postgres/mutation.js";
import { freshDatabase } from "../support/database.js";

/** PostgreSQL's isolationtester, and the folder of the libraries it was built with. */
export interface Tester {
  readonly program: string;
  readonly libraries: string;
}

// Its path in a build of PostgreSQL, below the library folder.
const places = ["postgresql/pgxs", "pgxs"].map((p) => `${p}/src/test/isolation/isolationtester`);
// isolationtester cancels a step that waits for another session after twice as long.
const PATIENCE_S = 30;
const stage = readFileSync(new URL("stage.sql", import.meta.url), "utf8");

/** The isolationtester of the embedded package, from a copy that this user can run, with its library links. */
export async function findTester(): Promise<Tester> {
  const { bin } = await surveySite();
  const libraries = join(dirname(bin), "lib");
  const program = places.map((place) => join(libraries, place)).find((path) => existsSync(path));
  if (program !== undefined) return { program, libraries };
  throw new Error(
    `There is no isolationtester below ${libraries}: the embedded PostgreSQL for this platform ` +
      "does not bring it, and without it no interleaving is tested.",
  );
}

/** The output of isolationtester for a specification, on a database of its own. */
export async function play(tester: Tester, spec: string, mutations: readonly Mutation[] = []): Promise<string> {
  const database = await freshDatabase({ migrated: true });
  try {
    await prepare(database.url, mutations);
    return tidied(await run(tester, database.url, spec));
  } finally {
    await database.drop();
  }
}

/** The stage comes last: it sets timeouts of functions, which a mutation would reset. */
async function prepare(url: string, mutations: readonly Mutation[]): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const watcher = { script: (text: string): Promise<unknown> => client.query(text) };
    for (const mutation of mutations) await mutate(mutation)(watcher);
    await client.query(stage);
  } finally {
    await client.end();
  }
}

function run({ program, libraries }: Tester, url: string, spec: string): Promise<string> {
  const child = spawn(program, [url], {
    stdio: ["pipe", "pipe", "pipe"],
    env: {
      LD_LIBRARY_PATH: libraries,
      DYLD_LIBRARY_PATH: libraries,
      LC_ALL: "C",
      PG_TEST_TIMEOUT_DEFAULT: String(PATIENCE_S),
    },
  });
  const said = { out: "", error: "" };
  child.stdout.on("data", (chunk: Buffer) => (said.out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (said.error += chunk.toString()));
  // It may end before it has read everything; what it says then is told below.
  child.stdin.on("error", () => {});
  child.stdin.end(spec);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => {
      if (status === 0) resolve(said.out + said.error);
      else reject(new Error(`isolationtester ended with ${status}:\n${said.out}${said.error}`));
    });
  });
}

/** Removes the spaces that pad columns. */
function tidied(text: string): string {
  return `${text.replaceAll(/[ \t]+$/gm, "").trimEnd()}\n`;
}
