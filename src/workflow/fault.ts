import { isSluiceError, SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";
import { clip } from "../core/text.js";

// A valid name is shorter; an invalid one may be megabytes long.
const NAME_BYTES_MAX = 512;

/** The location of an error, and its cause. */
interface Place {
  readonly workflow: unknown;
  readonly node?: unknown;
  readonly cause?: unknown;
}

/** An `invalid_workflow` that names the workflow and the node. */
export function invalidWorkflow(message: string, { workflow, node, cause }: Place): SluiceError {
  const where = node === undefined ? "" : `, node ${quote(node)}`;
  return new SluiceError("invalid_workflow", `workflow ${quote(workflow)}${where}: ${message}`, {
    details: { workflow: named(workflow), ...(node === undefined ? {} : { node: named(node) }) },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Rethrows a SluiceError of a core check as `invalid_workflow`. Other errors pass through. */
export function inPlace<T>(place: Place, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (!isSluiceError(cause) || cause.code === "invalid_workflow") throw cause;
    throw invalidWorkflow(cause.message, { ...place, cause });
  }
}

function named(value: unknown): string {
  return typeof value === "string" ? clip(value, NAME_BYTES_MAX) : quote(value);
}
