import { storable } from "../core/json.js";
import type { Logger } from "../core/ports.js";
import type { Run } from "./run.js";

interface ResultDesk {
  readonly resultBytesMax: number;
  readonly log: Logger;
}

/** The JSON text of a run's result, '' for none. One that is too large is replaced by a note, and that is told. */
export function resultText(run: Run, value: unknown, { resultBytesMax, log }: ResultDesk): string {
  if (value === undefined) return "";
  return storable(value, resultBytesMax, (bytes) => {
    const { type } = run.handler.contract;
    const about = { task: run.claim.id, type, bytes, bytesMax: resultBytesMax };
    log.warn("a result is too large and is stored as a note of it", about);
  });
}
