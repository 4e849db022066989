import type { Command } from "commander";
import { group } from "../verb.js";
import { cancelCommand } from "./cancel.js";
import { retryCommand } from "./retry.js";
import { showCommand } from "./show.js";
import { unblockCommand } from "./unblock.js";

/** `sluice tasks`: shows and controls single tasks. */
export function tasksCommand(): Command {
  return group(
    "tasks",
    {
      summary: "show, cancel, retry and unblock tasks",
      description: "Shows and controls tasks by their ids.",
      examples: ["show 4711", 'cancel 4711 4712 --reason "wrong price list" --yes', "retry 4711"],
    },
    [showCommand(), cancelCommand(), retryCommand(), unblockCommand()],
  );
}
