import { Command } from "commander";
import { connected } from "../postgres/connected.js";
import { Database } from "../postgres/database.js";
import { checkEncoding } from "../postgres/encoding.js";
import { migrate, planMigrate, type MigratePlan, type MigrateReport } from "../postgres/migrate.js";
import { SCHEMA_VERSION } from "../postgres/version.js";
import { green } from "./colors.js";
import { databaseSettings } from "./database.js";
import { printResult } from "./print.js";

interface MigrateFlags {
  readonly url?: string;
  readonly schema?: string;
  readonly json?: boolean;
  readonly plan?: boolean;
  readonly check?: boolean;
}

/** `sluice migrate`: brings a database up to date. */
export function migrateCommand(): Command {
  return new Command("migrate")
    .summary("bring a database up to date")
    .description(
      "Brings a database up to date: creates the schema if it is missing and runs the missing migrations.\n" +
        "Any number of processes may run it at once: one migrates, and the others wait and find nothing to do.",
    )
    .option("--url <url>", "the database, postgres://...; default: DATABASE_URL")
    .option("--schema <name>", 'the schema; default: SLUICE_SCHEMA, else "sluice"')
    .option("--plan", "print the missing SQL without running it")
    .option("--check", "exit with 1 if a migration is missing; changes nothing")
    .option("--json", "print one line of JSON")
    .addHelpText(
      "after",
      `
Examples:
  $ sluice migrate --url postgres://localhost/shop
  $ DATABASE_URL=postgres://localhost/shop sluice migrate --schema jobs --json
  $ sluice migrate --check || echo "run the migrations before this release"

The JSON: {"schema":"jobs","version":${SCHEMA_VERSION},"applied":["0001_tables"],"installed":["admit",...]}
or, on standard error: {"error":{"code":"database_unavailable","message":"..."}}`,
    )
    .action(runMigrate);
}

async function runMigrate({ json = false, plan, check, ...flags }: MigrateFlags): Promise<void> {
  const db = new Database(await databaseSettings(flags));
  const { schema } = db;
  try {
    await connected(db, async (client) => {
      await checkEncoding(db, client);
      if (plan === true || check === true) {
        const missing = await planMigrate(client, { schema });
        const lines = plan === true ? [missing.sql] : missingLines(missing);
        printResult(missing, missing.isMissing ? lines : linesOf(missing), json);
        if (check === true && missing.isMissing) process.exitCode = 1;
        return;
      }
      const report = await migrate(client, { schema, beside: (use) => connected(db, use) });
      printResult(report, linesOf(report), json);
    });
  } finally {
    await db.close();
  }
}

function missingLines({ schema, version, applied, installed }: MigratePlan): string[] {
  return [
    ...applied.map((name) => `missing: migration ${name}`),
    ...(installed.length > 0 ? [`missing: ${installed.length} functions and views`] : []),
    `schema ${schema} is not up to date with version ${version}: run sluice migrate`,
  ];
}

function linesOf({ schema, applied, installed, version }: MigrateReport): string[] {
  if (applied.length + installed.length === 0)
    return [`${green("up to date")}: schema ${schema} is at version ${version}`];
  const lines = applied.map((name) => `applied ${name}`);
  if (installed.length > 0) lines.push(`installed ${installed.length} functions and views`);
  return [...lines, `${green("done")}: schema ${schema} is now at version ${version}`];
}
