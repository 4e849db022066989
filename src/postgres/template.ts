import { createHash, randomBytes } from "node:crypto";
import pg from "pg";
import { SluiceError } from "../core/error.js";
import { toSluiceError } from "./errors.js";
import { migrate } from "./migrate.js";
import { schemaFiles } from "./schema-files.js";
import { standingClock } from "./rehearse.js";
import { inSchema } from "./statement.js";
import { SCHEMA_VERSION } from "./version.js";

// A database per test: migrated once per server, then copied.

const TEMPLATE = "sluice_template_kit_";
const COPY = "sluice_kit_";
// Databases left behind by a killed test process are removed when they are this old and unused.
const LEFTOVER_MS = 3_600_000;
const LEFTOVERS_MAX = 20;
const DUPLICATE_DATABASE = "42P04";
const INSUFFICIENT_PRIVILEGE = "42501";
const CONNECT_TIMEOUT_MS = 10_000;

/** A server, given by the address of a database on it, and the schema that the copies contain. */
interface TemplateOptions {
  readonly url: string;
  readonly schema: string;
}

const built = new Map<string, Promise<string>>();

/** Creates a database with the schema in place. Any number of processes may call this at once. */
export async function copyTemplate(options: TemplateOptions): Promise<string> {
  const template = await templateOf(options);
  const name = `${COPY}${Date.now().toString(36)}_${randomBytes(6).toString("hex")}`;
  await admin(options.url, (client) => client.query(`create database ${name} template ${template}`));
  return addressOf(options.url, name);
}

/** Drops a copy, even while it is in use. */
export async function dropCopy(url: string, copy: string): Promise<void> {
  const name = new URL(copy).pathname.slice(1);
  await admin(url, (client) => client.query(`drop database if exists ${name} with (force)`));
}

/** Built once per process and schema. A failure is not cached, so that the next test tries again. */
function templateOf(options: TemplateOptions): Promise<string> {
  const key = `${options.url} ${options.schema}`;
  let template = built.get(key);
  if (template === undefined) {
    template = findOrBuild(options);
    built.set(key, template);
    template.catch(() => built.delete(key));
  }
  return template;
}

async function findOrBuild({ url, schema }: TemplateOptions): Promise<string> {
  const name = TEMPLATE + (await digestOf(schema, new URL(url).username));
  await admin(url, async (client) => {
    // The first test process builds; the others wait and find the template. The lock ends with the connection.
    await client.query("select pg_advisory_lock(hashtextextended($1, 0))", [name]);
    await dropLeftovers(client);
    const found = await client.query("select from pg_database where datname = $1", [name]);
    if (found.rowCount === 0) await build(client, { url, schema }, name);
  });
  return name;
}

/** Builds under another name first, so that a process killed halfway leaves no partial template. */
async function build(client: pg.Client, { url, schema }: TemplateOptions, name: string) {
  const aside = `${name}_${randomBytes(4).toString("hex")}`;
  await client.query(`create database ${aside} template template0`);
  try {
    const address = addressOf(url, aside);
    await connected(address, async (inside) => {
      await migrate(inside, { schema, beside: (use) => connected(address, use) });
      await inside.query(inSchema(standingClock.text, schema));
    });
    // A session connected to a template keeps all others from copying it.
    await client.query(`alter database ${aside} allow_connections false`);
    await client.query(`alter database ${aside} rename to ${name}`);
  } catch (e) {
    await client.query(`drop database if exists ${aside} with (force)`);
    // Another process built it meanwhile: its address names another database, so it does not share our lock.
    if ((e as { code?: unknown }).code !== DUPLICATE_DATABASE) throw e;
  }
}

async function dropLeftovers(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "select datname as name from pg_database where datname ~ '^sluice_kit_[0-9a-z]+_[0-9a-f]{12}$' and pg_get_userbyid(datdba) = current_user order by datname",
  );
  const old = rows.filter(({ name }) => Date.now() - bornMs(name) > LEFTOVER_MS);
  for (const { name } of old.slice(0, LEFTOVERS_MAX)) {
    // Without force: a database in use stays. Another process may drop it first.
    await client.query(`drop database if exists ${name}`).catch(() => {});
  }
}

function bornMs(name: string): number {
  return Number.parseInt(name.slice(COPY.length).split("_")[0]!, 36);
}

/** Keeps a template of another version, schema or owner from being used as this one. */
async function digestOf(schema: string, user: string): Promise<string> {
  const hash = createHash("sha256").update(`${schema}\n${user}\n${SCHEMA_VERSION}\n`);
  hash.update(standingClock.text);
  const { migrations, routines } = await schemaFiles();
  for (const { name, digest } of [...migrations, ...routines]) hash.update(`${name} ${digest}\n`);
  return hash.digest("hex").slice(0, 16);
}

function addressOf(url: string, database: string): string {
  const address = new URL(url);
  address.pathname = `/${database}`;
  return address.href;
}

async function admin<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  try {
    return await connected(url, use);
  } catch (e) {
    if ((e as { code?: unknown }).code !== INSUFFICIENT_PRIVILEGE) throw toSluiceError(e);
    throw new SluiceError(
      "invalid_option",
      `the role must be allowed to create databases, because every test gets its own: ${(e as Error).message}`,
      { cause: e },
    );
  }
}

async function connected<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  client.on("error", () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
