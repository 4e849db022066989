import type { Command } from "commander";
import { SluiceError } from "../../core/error.js";
import { quote } from "../../core/quote.js";
import { verb as anyVerb, type Help } from "../verb.js";

/** A verb of `sluice tasks`. */
export function verb(name: string, help: Help): Command {
  return anyVerb(name, help, "tasks ");
}

/** The id of a task as typed. */
export function taskId(text: string): string {
  if (/^\d{1,18}$/.test(text)) return text;
  throw new SluiceError("invalid_option", `${quote(text)} is not a task id: use the digits that enqueue returned`);
}

/** The error for tasks that do not exist. */
export function noSuchTasks(ids: readonly string[]): SluiceError {
  const [what, it] = ids.length === 1 ? ["task", "it"] : ["tasks", "they"];
  const history = it === "it" ? "its history was not kept" : "their history was not kept";
  return new SluiceError("task_not_found", `there is no ${what} ${ids.join(", ")}, or ${it} ended and ${history}`, {
    details: { ids },
  });
}
