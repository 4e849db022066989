import { SluiceError } from "../core/error.js";

/** What a worker is told when the reply to its commit does not come. */
export function cut(): SluiceError {
  return new SluiceError(
    "database_unavailable",
    "the database is not available: the connection broke before the reply came (cutReply)",
  );
}
