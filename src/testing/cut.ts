import { SluiceError } from "../core/error.js";

/** The error that a worker gets when the reply to its commit is lost. */
export function cut(): SluiceError {
  return new SluiceError(
    "database_unavailable",
    "the database is not available: the connection broke before the reply arrived (cutReply)",
  );
}
