import { Command } from "commander";
import { cancelCommand } from "./cancel.js";
import { declareCommand } from "./declare.js";
import { definitionsCommand } from "./definitions.js";
import { graphCommand } from "./graph.js";
import { itemsCommand } from "./items.js";
import { listCommand } from "./list.js";
import { pauseCommand } from "./pause.js";
import { resumeCommand } from "./resume.js";
import { retryCommand } from "./retry.js";
import { sendCommand } from "./send.js";
import { startCommand } from "./start.js";
import { statusCommand } from "./status.js";
import { windowCommand } from "./window.js";

/** `sluice workflow`: manages runs of workflows from a terminal. */
export function workflowCommand(): Command {
  const command = new Command("workflow")
    .summary("start, watch and control runs of workflows")
    .description("Starts, shows and controls runs of workflows.");
  const verbs = [startCommand(), statusCommand(), itemsCommand(), graphCommand(), listCommand()];
  verbs.push(definitionsCommand(), declareCommand(), cancelCommand());
  verbs.push(retryCommand(), pauseCommand(), resumeCommand(), windowCommand(), sendCommand());
  for (const verb of verbs) command.addCommand(verb);
  return command.addHelpText(
    "after",
    `
Examples:
  $ sluice workflow start nightly --input '{"region":"eu"}' --watch
  $ sluice workflow status 12 --watch
  $ sluice workflow graph 12 --format svg --out run.svg

sluice workflow <verb> --help tells more about each.`,
  );
}
