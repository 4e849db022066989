import { isSluiceError, SluiceError } from "../core/error.js";
import { encodeInput } from "../core/json.js";
import { quote } from "../core/quote.js";
import { validateStored, type Schema } from "../core/schema.js";
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

/** The JSON text of an event's payload, as that of an input; what is wrong with it is told of the payload. */
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
