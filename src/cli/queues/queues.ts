import type { Command } from "commander";
import { group } from "../verb.js";
import { listCommand } from "./list.js";
import { pauseCommand, resumeCommand } from "./pause.js";

/** `sluice queues`: lists, pauses and resumes queues. */
export function queuesCommand(): Command {
  return group(
    "queues",
    {
      summary: "list, pause and resume queues",
      description: "Lists queues with their backlog, and pauses and resumes them.",
      examples: ["list", "pause mail", "resume mail"],
    },
    [listCommand(), pauseCommand(), resumeCommand()],
  );
}
