import { Command } from "commander";
import { listCommand } from "./list.js";
import { liftCommand, resetCommand, setCommand } from "./set.js";
import { showCommand } from "./show.js";

/** `sluice limits`: lists limits, shows one, and overrides their numbers. Without a verb, it lists. */
export function limitsCommand(): Command {
  const command = new Command("limits")
    .summary("list limits and groups, and override their numbers")
    .description(
      "Lists limits and groups, shows one with its holders, and overrides their numbers. Lists without a verb.",
    )
    .addCommand(listCommand(), { isDefault: true });
  for (const verb of [showCommand(), setCommand(), liftCommand(), resetCommand()]) command.addCommand(verb);
  return command.addHelpText(
    "after",
    `
Examples:
  $ sluice limits --prefix tenant- --json
  $ sluice limits show mail
  $ sluice limits set mail --total 7

sluice limits <verb> --help tells more about each.`,
  );
}
