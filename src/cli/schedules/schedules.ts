import type { Command } from "commander";
import { group } from "../verb.js";
import { pauseCommand, removeCommand, resumeCommand, triggerCommand } from "./control.js";
import { listCommand } from "./list.js";
import { showCommand } from "./show.js";

/** `sluice schedules`: lists and controls recurring schedules. */
export function schedulesCommand(): Command {
  return group(
    "schedules",
    {
      summary: "list and control recurring schedules",
      description: "Lists, shows and controls recurring schedules.",
      examples: ["list", "trigger nightly", "pause nightly"],
    },
    [listCommand(), showCommand(), pauseCommand(), resumeCommand(), triggerCommand(), removeCommand()],
  );
}
