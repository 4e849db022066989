import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { SluiceError } from "../../core/error.js";
import { quote } from "../../core/quote.js";
import type { Run } from "../../runs/run.js";
import { verb as anyVerb, type Help } from "../verb.js";

/** A verb of `sluice workflow`. */
export function verb(name: string, help: Help): Command {
  return anyVerb(name, help, "workflow ");
}

/** JSON as typed, or after an @ the name of a file that contains it; @- is standard input. */
export function jsonOf(option: string, text: string | undefined): unknown {
  if (text === undefined) return undefined;
  const said = text.startsWith("@") ? contentOf(option, text.slice(1)) : text;
  try {
    return JSON.parse(said);
  } catch (cause) {
    throw refusal(option, `${option} is not valid JSON: ${(cause as Error).message}`, cause);
  }
}

function contentOf(option: string, file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (cause) {
    throw refusal(option, `${option}: cannot read ${quote(file)}`, cause);
  }
}

/** A whole number as typed. The function that receives it checks its range. */
export function numberOf(option: string, text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw refusal(option, `${option} must be a whole number, not ${quote(text)}`);
}

/** For verbs that change a run that is not over: rejects if there was no such run. */
export async function requireDone(run: Run, done: boolean): Promise<void> {
  if (done) return;
  const status = await run.status();
  if (status === null) throw notThere(run.id);
  throw new SluiceError("workflow_over", `run ${run.id} of ${status.workflow} has ended: ${status.state}`);
}

export function notThere(id: string): SluiceError {
  return new SluiceError("run_not_found", `there is no run ${id}`, { details: { id } });
}

function refusal(option: string, message: string, cause?: unknown): SluiceError {
  return new SluiceError("invalid_option", message, { cause, details: { option } });
}
