import { Command } from "commander";
import { connected } from "../postgres/connected.js";
import { Database } from "../postgres/database.js";
import { checkEncoding } from "../postgres/encoding.js";
import { migrate, type MigrateReport } from "../postgres/migrate.js";
import { SCHEMA_VERSION } from "../postgres/version.js";
import { green } from "./colors.js";
import { databaseSettings } from "./database.js";
import { printResult } from "./print.js";

interface MigrateFlags {
  readonly url?: string;
  readonly schema?: string;
  readonly json?: boolean;
}

/** `sluice migrate`: brings a database up to date. */
export function migrateCommand(): Command {
  return new Command("migrate")
    .summary("bring a database up to date")
    .description(
      "Brings a database up to date: makes the schema if it is missing and runs the migrations it lacks.\n" +
        "Any number of processes may run it at once: one applies, the others wait and find nothing to do.",
    )
    .option("--url <url>", "the database, postgres://...; default: DATABASE_URL")
    .option(
      "--schema <name>",
      'the schema that holds everything; default: SLUICE_SCHEMA, else "sluice"',
    )
    .option("--json", "print one line of JSON")
    .addHelpText(
      "after",
      `
Examples:
  $ sluice migrate --url postgres://localhost/shop
  $ DATABASE_URL=postgres://localhost/shop sluice migrate --schema jobs --json

The JSON: {"schema":"jobs","version":${SCHEMA_VERSION},"applied":["0001_tables",...]}
or, on the error output: {"error":{"code":"database_unavailable","message":"..."}}`,
    )
    .action(runMigrate);
}

async function runMigrate({ json = false, ...flags }: MigrateFlags): Promise<void> {
  const db = new Database(await databaseSettings(flags));
  try {
    const report = await connected(db, async (client) => {
      await checkEncoding(db, client);
      return migrate(client, { schema: db.schema });
    });
    printResult(report, linesOf(report), json);
  } finally {
    await db.close();
  }
}

function linesOf({ schema, applied, version }: MigrateReport): string[] {
  if (applied.length === 0) return [`${green("up to date")}: schema ${schema} is at ${version}`];
  const done = `${green("done")}: schema ${schema} is at ${version} now`;
  return [...applied.map((name) => `applied ${name}`), done];
}
