/** Stable codes for every refusal and failure in Sluice. */
export type ErrorCode =
  | "missing_url"
  | "invalid_option"
  | "invalid_name"
  | "invalid_key"
  | "input_invalid"
  | "input_not_serialisable"
  | "input_too_large"
  | "input_not_storable"
  | "unknown_task"
  | "unknown_queue"
  | "unknown_limit"
  | "unknown_schedule"
  | "invalid_cron"
  | "invalid_time_zone"
  | "invalid_workflow"
  | "unknown_workflow"
  | "unknown_event"
  | "unknown_node"
  | "too_many_events"
  | "workflow_failed"
  | "workflow_cancelled"
  | "workflow_over"
  | "workflow_stopping"
  | "workflow_running"
  | "workflow_paused"
  | "run_not_found"
  | "key_missing"
  | "limit_shape"
  | "duplicate_limit"
  | "limits_in_code"
  | "idempotency_conflict"
  | "task_not_found"
  | "task_failed"
  | "task_cancelled"
  | "result_not_kept"
  | "result_truncated"
  | "map_changed"
  | "wait_timeout"
  | "lease_lost"
  | "timeout"
  | "poisoned"
  | "stopped"
  | "closed"
  | "not_claimed"
  | "schema_missing"
  | "schema_newer"
  | "schema_older"
  | "schema_edited"
  | "isolation_level"
  | "encoding_unsupported"
  | "not_permitted"
  | "prepare_unsupported"
  | "connections_exceeded"
  | "port_unavailable"
  | "database_unavailable"
  | "database_busy"
  | "embedded_unsupported"
  | "not_drained"
  | "embedded_failed";

/** Optional data of an error, besides its code and message. */
interface SluiceErrorOptions {
  readonly cause?: unknown;
  readonly details?: Record<string, unknown>;
}

/** The only error class of Sluice. Branch on `code`, read `message`, and find the data in `details`. */
export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly code: ErrorCode;
  readonly details?: Record<string, unknown>;

  constructor(code: ErrorCode, message: string, options: SluiceErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    if (options.details !== undefined) this.details = options.details;
  }
}

/** Returns whether a caught value is a SluiceError, and has this code if one is given. */
export function isSluiceError(e: unknown, code?: ErrorCode): e is SluiceError {
  try {
    return e instanceof SluiceError && (code === undefined || e.code === code);
  } catch {
    // A proxy may throw from `instanceof`; in any case it is not a SluiceError.
    return false;
  }
}
