import { createInterface } from "node:readline";
import type { Command } from "commander";
import { SluiceError } from "../core/error.js";

/** The flag of verbs that stop or remove something. */
export interface YesFlag {
  readonly yes?: boolean;
}

/** Where a question is asked: standard error, so that a result can go to a file. */
interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/** Adds --yes to a verb that stops or removes something. */
export function withYes(command: Command): Command {
  return command.option("--yes", "do not ask; required without a terminal");
}

/**
 * Asks before something is stopped or removed. Without a terminal, throws unless --yes was given. After any other answer
 * than yes, returns false and lets the command exit with 1.
 */
export async function confirmed(
  question: string,
  { yes = false }: YesFlag,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<boolean> {
  if (yes) return true;
  if (input.isTTY !== true || output.isTTY !== true) {
    throw new SluiceError("invalid_option", `there is no terminal to ask on (${question}): pass --yes to do it`, {
      details: { option: "yes" },
    });
  }
  output.write(`${question} [y/N] `);
  if (/^\s*y(es)?\s*$/i.test(await lineOf(input))) return true;
  output.write("nothing was changed\n");
  process.exitCode = 1;
  return false;
}

/** The line that is typed; empty if the input ends without one, as with Ctrl-D. */
function lineOf(input: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    const lines = createInterface({ input, terminal: false });
    lines.once("line", (line) => {
      resolve(line);
      lines.close();
    });
    lines.once("close", () => resolve(""));
  });
}
