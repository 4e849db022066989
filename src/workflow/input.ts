import { isSluiceError, SluiceError } from "../core/error.js";
import { encodeInput } from "../core/json.js";
import { quote } from "../core/quote.js";
import { validateStored, type Schema } from "../core/schema.js";
import type { Workflow } from "./workflow.js";

/**
 * Returns the JSON text of a run's input. References read the stored input, and no handler parses it again, so the
 * stored form is the schema's output, including defaults and coercions.
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

/** Returns the JSON text of an event's payload, encoded like an input; errors name the payload. */
export async function encodePayload(
  event: string,
  schema: Schema<unknown, unknown>,
  payload: unknown,
  bytesMax: number,
): Promise<string> {
  try {
    return await encodeRunInput({ input: schema }, payload, bytesMax);
  } catch (e) {
    if (!isSluiceError(e)) throw e;
    const message = e.message.replace("the input", `the payload of event ${quote(event)}`);
    throw new SluiceError(e.code, message, { cause: e, details: { ...e.details, event } });
  }
}
