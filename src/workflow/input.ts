import { encodeInput } from "../core/json.js";
import { validateStored } from "../core/schema.js";
import type { Workflow } from "./workflow.js";

/**
 * The JSON text of a run's input. References read what is stored, and no handler will parse it again: so
 * what is stored is what the schema makes of the input, defaults and coercions included.
 */
export function encodeRunInput(
  { input: schema }: Pick<Workflow, "input">,
  input: unknown,
  bytesMax: number,
): string | Promise<string> {
  const given: unknown = JSON.parse(encodeInput(input, bytesMax));
  const parsed: unknown = validateStored(schema, given);
  return parsed instanceof Promise
    ? parsed.then((value: unknown) => encodeInput(value, bytesMax))
    : encodeInput(parsed, bytesMax);
}
