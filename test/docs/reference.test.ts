import type { Command } from "commander";
import { expect, test } from "vitest";
import { completionCommand } from "../../src/cli/completion/completion.js";
import { configCommand } from "../../src/cli/config.js";
import { explainCommand } from "../../src/cli/explain.js";
import { limitsCommand } from "../../src/cli/limits/limits.js";
import { migrateCommand } from "../../src/cli/migrate.js";
import { planCommand } from "../../src/cli/plan.js";
import { queuesCommand } from "../../src/cli/queues/queues.js";
import { schedulesCommand } from "../../src/cli/schedules/schedules.js";
import { tasksCommand } from "../../src/cli/tasks/tasks.js";
import { workersCommand } from "../../src/cli/workers.js";
import { workflowCommand } from "../../src/cli/workflow/workflow.js";
import { pageText } from "../support/markdown.js";

/** The exports of an entry point, including re-exports of other entry points. */
function exportsOf(door: string): string[] {
  return [...pageText(door).matchAll(/export (?:type )?\{([^}]+)\}/g)].flatMap(([, names]) =>
    names!
      .split(",")
      .map((name) => name.trim().replace(/^type /, ""))
      .filter((name) => name !== "")
      .map((name) => name.split(" as ").at(-1)!),
  );
}

test("docs/reference/api.md names every export of sluice and sluice/client", () => {
  const page = pageText("docs/reference/api.md");
  const exported = [...exportsOf("src/index.ts"), ...exportsOf("src/client.ts")];
  expect(exported.length).toBeGreaterThan(80);
  expect(exported.filter((name) => !new RegExp(`\`${name}\\b`).test(page))).toEqual([]);
});

test("docs/reference/cli.md lists every command and every option", () => {
  const page = pageText("docs/reference/cli.md");
  const missing = [
    migrateCommand(),
    configCommand(),
    planCommand(),
    explainCommand(),
    tasksCommand(),
    queuesCommand(),
    limitsCommand(),
    schedulesCommand(),
    workersCommand(),
    completionCommand(),
    workflowCommand(),
  ].flatMap((command) => {
    const [, after] = page.split(`## sluice ${command.name()}\n`);
    if (after === undefined) return [command.name()];
    const section = page.split("\n## sluice ")[0]! + after.split("\n## ")[0]!;
    return wordsOf(command).filter((word) => !section.includes(`\`${word}`));
  });
  expect(missing).toEqual([]);
});

/** The options of a command, and the names and options of its subcommands. */
function wordsOf(command: Command): string[] {
  const options = command.options.map(({ long }) => long!);
  return [...options, ...command.commands.flatMap((below) => [below.name(), ...wordsOf(below)])];
}
