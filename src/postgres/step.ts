import type { Claim } from "../core/claim.js";
import { issueClaim } from "../core/claim.js";
import type { Connection } from "./connection.js";
import { PassedReader, type Passed } from "./passed.js";
import { statement } from "./statement.js";

/** A task that was just claimed. */
export interface ClaimedTask {
  readonly claim: Claim;
  readonly stream: number;
  readonly attempt: number;
  readonly input: unknown;
  /** The length of its input as JSON text. */
  readonly inputLength: number;
  /** Maximum number of limit and order slots that the task holds. */
  readonly holds: number;
  /** W3C trace context of the caller that enqueued it; null without tracing. */
  readonly trace: string | null;
  /** Random and permanent for this task. Together with the id it is never issued again. */
  readonly nonce: string;
  /** The limits it passed, if it has limits and the claim requested them. */
  readonly passed?: Passed | undefined;
  /** A suspect: it was executing at three crashes, and its worker runs nothing beside it. */
  readonly alone?: true;
}

/** A success to record: result is JSON text, or '' for none. */
export interface Success {
  readonly claim: Claim;
  readonly result: string;
  /** How many other tasks its end may let through, at most: the slots it holds. */
  readonly holds: number;
}

/**
 * The last position of a source's head. A source is the tasks of a stream that need a slot of the gate; gate 0: none.
 */
export interface Spot {
  readonly stream: number;
  readonly gate: number;
  readonly rank: number;
  readonly turn: string;
}

/** A search that took long, or began at spots. */
export interface Look {
  readonly ms: number;
  /** The heads it found. */
  readonly heads: readonly Spot[];
}

interface StepCall {
  readonly worker: string;
  /** Random, new for every call. */
  readonly token: string;
  readonly streams: readonly number[];
  readonly want: number;
  readonly successes: readonly Success[];
  readonly keepHistory: boolean;
  /** The stream to begin with, 1-based. */
  readonly from: number;
  /** Where to search, if searches take long; empty: everywhere. */
  readonly spots: readonly Spot[];
  /** Whether to record, after this claim, that the worker sleeps (the claim returned fewer than wanted) or is awake. */
  readonly tells: boolean;
  /** Whether to report the limits that every task passed, for metrics. */
  readonly meters?: boolean;
}

export interface StepReply {
  readonly claimed: readonly ClaimedTask[];
  /** Successes that were no longer ours to record. */
  readonly refused: number;
  readonly look: Look | null;
  /**
   * How long a claimed task had been due, in ms: the longest wait among the reported tasks, which are the first of a
   * stream and, if requested, all with limits. Null if each of them was tried before.
   */
  readonly waitMs: number | null;
  /** Some tasks of runs must be placed: tasks in streams of this worker, or many of them. */
  readonly unplaced: boolean;
}

const stepStatement = statement<{
  id: string;
  stream: number;
  attempt: number;
  input: unknown;
  holds: number;
  trace: string | null;
  passed: string | null;
  nonce: string | null;
  report: unknown;
}>({
  name: "step",
  text: `select id::text as id, stream, attempt, input, holds, trace, passed, nonce, report
    from sluice.step($1, $2, $3::text::int[], $4, $5::text::bigint[], $6::text::bigint[], $7, $8, $9, $10, $11::text::sluice.spot[], $12)`,
  params: ["int8", "int8", "text", "int4", "text", "text", "text", "bool", "int4", "bool", "text", "bool"],
  columns: ["id", "stream", "attempt", "input", "holds", "trace", "passed", "nonce", "report"],
});

type TaskRow = [
  id: string,
  stream: number,
  attempt: number,
  input: string,
  holds: number,
  trace: string | null,
  passed: string | null,
  nonce: string,
  report: null,
];
// All columns but the report are null.
type ReportRow = [id: null, null, null, null, null, null, null, null, report: string];

/** What a step reports besides its tasks; see the schema's type `claimed`. */
interface StepReport {
  readonly refused?: number;
  readonly unplaced?: true;
  readonly searchMs?: number;
  readonly heads?: readonly (readonly [stream: number, gate: number, rank: number, turn: string])[];
}

const RECORD = "\u001e";

/** Settles successes and claims more tasks, in one round trip and one transaction. */
export async function step(connection: Connection, call: StepCall): Promise<StepReply> {
  const rows = await connection.rows(stepStatement, valuesOf(call));
  const claimed: ClaimedTask[] = [];
  let refused = 0;
  let look: Look | null = null;
  let unplaced = false;
  const reader = new PassedReader();
  let waitMs: number | null = null;
  for (const row of rows as (TaskRow | ReportRow)[]) {
    if (row[0] === null) {
      const report = JSON.parse(row[8]) as StepReport;
      refused += report.refused ?? 0;
      unplaced ||= report.unplaced ?? false;
      look = lookOf(report) ?? look;
      continue;
    }
    const [id, stream, attempt, text, holds, trace, told, nonce] = row;
    const claim = issueClaim(id, call.token);
    const input: unknown = JSON.parse(text);
    const read = typeof told === "string" ? reader.read(told) : undefined;
    if (read !== undefined && read.waitMs >= (waitMs ?? 0)) waitMs = read.waitMs;
    const passed = read === undefined || read.limits.length === 0 ? undefined : read;
    const inputLength = text.length;
    // One object literal for tasks with and without limits: objects of two shapes slow down all code that reads them.
    claimed.push({ claim, stream, attempt, input, inputLength, holds, trace, nonce, passed });
  }
  return { claimed, refused, look, waitMs, unplaced };
}

function lookOf({ searchMs, heads = [] }: StepReport): Look | null {
  if (searchMs === undefined) return null;
  return { ms: searchMs, heads: heads.map(([stream, gate, rank, turn]) => ({ stream, gate, rank, turn })) };
}

function spotsText(spots: readonly Spot[]): string {
  return `{${spots.map((s) => `"(${s.stream},${s.gate},${s.rank},${s.turn})"`).join(",")}}`;
}

function valuesOf({ successes, ...call }: StepCall): unknown[] {
  let ids: string | null = null;
  let tokens: string | null = null;
  let results: string | null = null;
  if (successes.length > 0) {
    ids = `{${successes.map((s) => s.claim.id).join(",")}}`;
    tokens = `{${successes.map((s) => s.claim.token).join(",")}}`;
    if (successes.some((s) => s.result !== "")) results = successes.map((s) => s.result).join(RECORD);
  }
  return [
    call.worker,
    call.token,
    `{${call.streams.join(",")}}`,
    call.want,
    ids,
    tokens,
    results,
    call.keepHistory,
    call.from,
    call.tells,
    spotsText(call.spots),
    call.meters ?? false,
  ];
}
