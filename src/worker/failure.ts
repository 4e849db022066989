import { isSluiceError } from "../core/error.js";
import type { ErrorDescription } from "../core/json.js";
import type { Logger } from "../core/ports.js";
import type { Connection } from "../postgres/connection.js";
import { tellTrouble } from "../postgres/errors.js";
import { recordedStates, type RecordedState } from "../postgres/recorded.js";
import type { Settlement } from "../postgres/settle.js";

/** What became of a failed execution, as recorded in the database. unknown: the database could not be asked. */
type Verdict = "final" | "retried" | "cancelled" | "unknown";

/** An outcome on its way to the database. */
export interface Outcome extends Settlement {
  /** Logs a failure, once it is known what became of it. */
  readonly tell?: (verdict: Verdict) => void;
  /** The attempt that failed. */
  readonly attempt?: number;
}

/** One failed execution. */
interface Failure {
  readonly id: string;
  readonly type: string;
  readonly attempt: number;
  readonly error: unknown;
  readonly described: ErrorDescription;
  /** Whether the task has failed for good as far as the worker knows: the stored number of attempts may differ. */
  readonly isFinal: boolean;
}

interface FailureLoggers {
  /** Suppresses repeated lines. */
  readonly log: Logger;
  readonly logger: Logger;
}

/**
 * Logs recorded failures. The database decides whether a task failed for good: the number of attempts is stored with the
 * task, a cancel may have been requested, and a workflow does not retry an invalid input.
 */
export async function tellFailures(connection: Connection, items: readonly Outcome[]): Promise<void> {
  const failed = items.filter(({ tell }) => tell !== undefined);
  if (failed.length === 0) return;
  const ids = failed.map(({ claim }) => claim.id);
  const states = await recordedStates(connection, ids).catch(() => null);
  for (const { claim, attempt, tell } of failed) tell!(verdictOf(states?.get(claim.id), attempt));
}

/** Logs failures whose outcomes cannot be recorded any more: the lease is lost, and another worker runs the tasks. */
export function tellLost(items: readonly Outcome[]): void {
  for (const { tell } of items) tell?.("retried");
}

/** A later attempt may already have ended: its outcome is not the outcome of this attempt. */
function verdictOf(recorded: RecordedState | undefined, attempt: number | undefined): Verdict {
  if (recorded === undefined) return "unknown";
  if (recorded.attempt !== attempt) return "retried";
  if (recorded.state === "failed") return "final";
  return recorded.state === "cancelled" ? "cancelled" : "retried";
}

const WORDS = {
  final: "a task failed for good",
  retried: "a task failed and will be retried",
  cancelled: "a task failed and will not be retried, because it was cancelled",
};

/**
 * Failures that are retried are frequent, so at most one line per second is logged. Final failures are logged each time,
 * except those caused by a lost database: an outage hits everything at once and is logged as one problem.
 */
export function logFailure({ log, logger }: FailureLoggers, failure: Failure, verdict: Verdict): void {
  const { id, type, attempt, error, isFinal } = failure;
  const { message, stack } = failure.described;
  const known = verdict === "unknown" ? (isFinal ? "final" : "retried") : verdict;
  if (isSluiceError(error, "database_unavailable")) return tellTrouble(log, WORDS[known], error);
  const about = { task: id, type, attempt, error: message };
  if (known !== "final") return log.warn(WORDS[known], about);
  try {
    logger.error(WORDS.final, { ...about, stack });
  } catch {
    // A logger that throws must not take the outcome with it.
  }
}
