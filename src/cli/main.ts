#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { isSluiceError, type ErrorCode } from "../core/error.js";
import { completionCommand } from "./completion/completion.js";
import { configCommand } from "./config.js";
import { explainCommand } from "./explain.js";
import { limitsCommand } from "./limits/limits.js";
import { migrateCommand } from "./migrate.js";
import { planCommand } from "./plan.js";
import { printError } from "./print.js";
import { queuesCommand } from "./queues/queues.js";
import { schedulesCommand } from "./schedules/schedules.js";
import { tasksCommand } from "./tasks/tasks.js";
import { workersCommand } from "./workers.js";
import { workflowCommand } from "./workflow/workflow.js";

const USAGE_EXIT = 2;
// Errors that the same arguments always cause: a retry cannot succeed.
const USAGE: readonly ErrorCode[] = ["missing_url", "invalid_option", "invalid_name"];

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

const program = new Command("sluice")
  .description("A durable task queue on PostgreSQL.")
  .version(version)
  .addCommand(migrateCommand())
  .addCommand(configCommand())
  .addCommand(planCommand())
  .addCommand(workflowCommand())
  .addCommand(explainCommand())
  .addCommand(tasksCommand())
  .addCommand(queuesCommand())
  .addCommand(limitsCommand())
  .addCommand(schedulesCommand())
  .addCommand(workersCommand())
  .addCommand(completionCommand())
  .addHelpText(
    "after",
    `
Exit codes: 0 success, 1 failure (the error code is printed), ${USAGE_EXIT} wrong usage.

Try: sluice migrate --help`,
  )
  .showHelpAfterError("(use --help for help)");

// The reader has closed the pipe, as head does: nothing is left to do.
process.stdout.on("error", (e: NodeJS.ErrnoException) => {
  if (e.code !== "EPIPE") throw e;
  process.exit();
});

// Commands are created apart from the program and do not inherit this setting.
overrideExit(program);

try {
  await program.parseAsync();
} catch (e) {
  process.exitCode = exitCodeOf(e);
}

function overrideExit(command: Command): void {
  command.exitOverride();
  for (const below of command.commands) overrideExit(below);
}

function exitCodeOf(e: unknown): number {
  // Commander has already printed the error, or the requested help.
  if (e instanceof CommanderError) return e.exitCode === 0 ? 0 : USAGE_EXIT;
  printError(e, process.argv.includes("--json"));
  return isSluiceError(e) && USAGE.includes(e.code) ? USAGE_EXIT : 1;
}
