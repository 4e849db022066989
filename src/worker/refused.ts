import { describeError, noteOf } from "../core/json.js";
import { isSluiceError } from "../core/error.js";
import { sqlstate } from "../postgres/errors.js";
import type { Outcome } from "./failure.js";
import type { Completion, Parcel } from "./outbox.js";

/**
 * Why a reachable database does not record outcomes.
 * - data: it would refuse the same data again.
 * - timeout: its statement_timeout or transaction_timeout cancelled the statement.
 * - busy: another transaction holds a row, or there was a deadlock.
 * - unknown: anything else, which may pass, such as a server that is being upgraded or a disk that fails.
 */
export type Refusal = "data" | "timeout" | "busy" | "unknown";

// Errors that affect every statement of the worker: a smaller statement would not help.
const OF_ALL = new Set([
  "database_unavailable",
  "lease_lost",
  "stopped",
  "schema_missing",
  "not_permitted",
  "prepare_unsupported",
  "isolation_level",
]);

const TRANSACTION_TIMEOUT = "25P04";
// Data exceptions, and values that exceed a limit of the server.
const OF_DATA = /* guard:data */ /^(22|54)/; /* end */

/**
 * Returns null if the database is unavailable, has given the lease to others, or accepts nothing from this worker at
 * all.
 */
export function refusalOf(e: unknown): Refusal | null {
  if (isSluiceError(e, "database_busy")) return sqlstate(e.cause) === "57014" ? "timeout" : "busy";
  if (isSluiceError(e)) return OF_ALL.has(e.code) ? null : "data";
  // Class 57: the server is being stopped, or an administrator has intervened.
  const code = sqlstate(e);
  if (code === null || /^(08|53|57)/.test(code)) return null;
  if (code === TRANSACTION_TIMEOUT) return "timeout";
  // guard: only what is refused for its data is replaced -> test/worker/refused.test.ts: "a result that the database refuses for a transient reason is recorded unchanged"
  return OF_DATA.test(code) ? "data" : "unknown";
}

// A single large outcome that a timeout cancels this many times is too large. If the outcome is small, something else
// takes the time, and will pass.
const TIMEOUTS_MAX = 3;
const LARGE_LENGTH_MIN = 64 * 1024;
const DELAY_MS_MIN = 50;
const DELAY_MS_MAX = 3_000;

/** A part of a refused statement. It is sent by itself, without a claim. */
export interface Piece<T> extends Parcel<T> {
  /** How often its only outcome was refused. */
  readonly tries: number;
  /** A storable replacement is already in its place. */
  readonly mended: boolean;
  readonly dueMs: number;
}

interface Terms<T> {
  readonly refusal: Refusal;
  readonly nowMs: number;
  /** Returns the same outcome with a storable replacement, or null if there is nothing to replace. */
  readonly mend: (item: T) => T | null;
}

/** Splits refused outcomes in half, down to a single one, which is then mended or retried by itself. */
export function piecesOf<T>(parcel: Parcel<T> | Piece<T>, terms: Terms<T>): Piece<T>[] {
  const { session, items } = parcel;
  const fresh = { session, tries: 0, mended: false, dueMs: 0 };
  // guard: what is refused is split -> test/worker/refused.test.ts: "a result that the database refuses is recorded as a note, and the others of its batch unchanged"
  if (items.length > /* guard:split */ 1 /* end */) {
    const half = Math.ceil(items.length / 2);
    return [
      { ...fresh, items: items.slice(0, half) },
      { ...fresh, items: items.slice(half) },
    ];
  }
  const { tries: before, mended: already } = "tries" in parcel ? parcel : fresh;
  const tries = before + 1;
  const { refusal, nowMs, mend } = terms;
  const toBlame = refusal === "data" || (refusal === "timeout" && tries >= TIMEOUTS_MAX);
  // guard: a refused result becomes a note -> test/worker/refused.test.ts: "a result that the database refuses is recorded as a note, and the others of its batch unchanged"
  const mended = toBlame && /* guard:note */ !already /* end */ ? mend(items[0]!) : null;
  if (mended !== null) return [{ ...fresh, items: [mended], tries, mended: true }];
  const delayMs = Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** Math.min(tries, 10));
  return [{ ...fresh, items, tries, mended: already, dueMs: nowMs + delayMs }];
}

/** Replaces the result by a note, if the result may be the cause. The task has still succeeded. */
export function mendedSuccess(success: Completion, e: unknown): Completion | null {
  if (success.result === "" || isInnocent(success.result, e)) return null;
  return { ...success, result: noteOf(success.result, wordsOf(e)) };
}

export function mendedOther(other: Outcome, e: unknown): Outcome | null {
  if (other.outcome === "" || other.kind === "wait" || isInnocent(other.outcome, e)) return null;
  const message = `the database refused to store this error: ${wordsOf(e)}`;
  const outcome = other.kind === "cancel" ? { reason: null } : { name: "Error", message };
  return { ...other, outcome: JSON.stringify(outcome) };
}

/** Whether a timeout has another cause than the text to be stored. */
function isInnocent(text: string, e: unknown): boolean {
  // guard: a timeout costs no small result -> test/worker/refused.test.ts: "a small result is kept after a timeout, and a large one becomes a note"
  return /* guard:small */ refusalOf(e) === "timeout" && text.length < LARGE_LENGTH_MIN; /* end */
}

const WORDS_MAX = 200;

/** Only ASCII: the database may not be able to store anything else. */
function wordsOf(e: unknown): string {
  const { message } = describeError(e);
  return message.slice(0, WORDS_MAX).replaceAll(/[^ -~]/g, "?");
}
