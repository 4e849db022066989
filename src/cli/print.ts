import { isSluiceError } from "../core/error.js";
import { onError } from "./colors.js";

/** Prints an error: a line for people, or with json an object for programs. Both include the code. */
export function printError(e: unknown, json: boolean): void {
  const code = isSluiceError(e) ? e.code : "unexpected";
  const message = e instanceof Error ? e.message : String(e);
  const line = json
    ? JSON.stringify({ error: { code, message } })
    : `${onError.red("error")} ${onError.bold(code)}: ${message}`;
  process.stderr.write(`${line}\n`);
}

/** Prints a result: lines for people, or with json an object for programs. */
export function printResult(result: object, lines: readonly string[], json: boolean): void {
  process.stdout.write(`${json ? JSON.stringify(result) : lines.join("\n")}\n`);
}
