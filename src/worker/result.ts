import { storable } from "../core/json.js";
import type { Logger } from "../core/ports.js";
import type { Execution } from "./execution.js";

interface ResultServices {
  readonly resultBytesMax: number;
  readonly log: Logger;
}

/**
 * The JSON text of an execution's result, '' for none. A result that is too large is replaced by a note, and logged.
 */
export function resultText(execution: Execution, value: unknown, { resultBytesMax, log }: ResultServices): string {
  if (value === undefined) return "";
  return storable(value, resultBytesMax, (bytes) => {
    const { type } = execution.handler.contract;
    const about = { task: execution.claim.id, type, bytes, bytesMax: resultBytesMax };
    log.warn("a result is too large; a note of its size is stored instead", about);
  });
}
