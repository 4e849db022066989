import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { SluiceError } from "../core/error.js";

/** A numbered change of tables, types or indexes. Frozen once it has been released. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly digest: string;
  /** The statements of a migration that runs outside a transaction, one by one; null: it runs in one. */
  readonly outside: readonly string[] | null;
}

/** The current text of a function or a view. */
export interface Routine {
  readonly name: string;
  readonly kind: "function" | "view";
  readonly sql: string;
  readonly digest: string;
}

/** All parts of a schema. */
export interface SchemaFiles {
  readonly migrations: readonly Migration[];
  readonly routines: readonly Routine[];
}

// Plans of the hot functions must not depend on statistics, which do not exist for a queue that was empty a moment ago:
// without these settings a claim fetches and sorts all tasks of a limit (docs/internals/performance.md). Without an
// index, the planner adds a huge cost for a sequential scan, which would trigger JIT compilation; so jit is off too.
const INDEX_PLANS =
  "set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off";
const KEPT_PLANS = "set plan_cache_mode = force_generic_plan set jit = off";

/** Maps a comment in the head of a function to the settings it stands for. */
const SETTINGS = new Map([
  ["/* settings: index plans */", INDEX_PLANS],
  ["/* settings: kept plans */", KEPT_PLANS],
]);

let files: Promise<SchemaFiles> | null = null;

/** The files, read once. They are located only when needed, because a bundle has none beside it. */
export function schemaFiles(): Promise<SchemaFiles> {
  files ??= readFiles();
  files.catch(() => (files = null));
  return files;
}

async function readFiles(): Promise<SchemaFiles> {
  const [migrations, routines] = await Promise.all([readMigrations(), readRoutines()]);
  if (migrations.length === 0 || routines.length === 0) throw notFound();
  return { migrations, routines };
}

async function readMigrations(): Promise<Migration[]> {
  const files = (await sqlFiles("migrations")).filter(({ name }) => /^\d{4}_/.test(name));
  return files.map(({ name, sql }) => migrationOf(name, sql));
}

const OUTSIDE = /^-- outside a transaction\n/;

export function migrationOf(name: string, sql: string): Migration {
  const outside = OUTSIDE.test(sql) ? statementsOf(sql) : null;
  return { number: Number(name.slice(0, 4)), name, sql, digest: digestOf(sql), outside };
}

/** Works for statements without quoted bodies: a statement ends where a line ends with a semicolon. */
function statementsOf(sql: string): string[] {
  const statements = sql.replaceAll(/^\s*--.*$/gm, "").split(/;\s*$/m);
  return statements.map((text) => text.trim()).filter((text) => text !== "");
}

async function readRoutines(): Promise<Routine[]> {
  const files = await sqlFiles("functions");
  const routines = files.map(({ name, sql }): Routine => {
    const kind = /^create or replace view /m.test(sql) ? "view" : "function";
    const text = withSettings(sql);
    return { name, kind, sql: text, digest: digestOf(text) };
  });
  return inOrder(routines);
}

/** Sorts routines by dependency: a view comes after everything it names, a function after the types in its head. */
function inOrder(routines: readonly Routine[]): Routine[] {
  const byName = new Map(routines.map((routine) => [routine.name, routine]));
  const begun = new Set<Routine>();
  const ordered: Routine[] = [];
  const add = (routine: Routine): void => {
    // A comment may name something that need not exist first, even in a cycle.
    if (begun.has(routine)) return;
    begun.add(routine);
    const { kind, sql } = routine;
    const text = kind === "view" ? sql : sql.slice(0, sql.indexOf("$$"));
    for (const [, other] of text.matchAll(/\bsluice\.(\w+)/g)) {
      const needed = byName.get(other!);
      if (needed !== undefined) add(needed);
    }
    ordered.push(routine);
  };
  for (const routine of routines) add(routine);
  return ordered;
}

/** The text of a function with its settings in place of the comment that stands for them. */
export function withSettings(sql: string): string {
  let text = sql;
  for (const [comment, settings] of SETTINGS) text = text.replaceAll(comment, settings);
  return text;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** All SQL files of a folder and its subfolders, by name. */
async function sqlFiles(room: string): Promise<{ name: string; sql: string }[]> {
  try {
    const folder = new URL(`./${room}/`, import.meta.url);
    const found = await readdir(folder, { recursive: true });
    const paths = found.filter((path) => path.endsWith(".sql")).toSorted();
    return await Promise.all(
      paths.map(async (path) => ({
        name: path.replaceAll("\\", "/").split("/").at(-1)!.slice(0, -".sql".length),
        sql: await readFile(new URL(path.replaceAll("\\", "/"), folder), "utf8"),
      })),
    );
  } catch (e) {
    throw notFound(e);
  }
}

function notFound(cause?: unknown): SluiceError {
  return new SluiceError(
    "invalid_option",
    "the migration files are missing, probably because the code is bundled: run `npx sluice migrate` at your " +
      "deploy, and connect with migrate: false",
    { ...(cause === undefined ? {} : { cause }), details: { option: "migrate" } },
  );
}
