import type { Claim } from "../core/claim.js";
import { issueClaim } from "../core/claim.js";
import type { Connection } from "./connection.js";
import { PassedReader, type Passed } from "./passed.js";
import { statement } from "./statement.js";

/** A task that was claimed just now. */
export interface ClaimedTask {
  readonly claim: Claim;
  readonly stream: number;
  readonly attempt: number;
  readonly input: unknown;
  /** The length of its input as JSON text. */
  readonly inputLength: number;
  /** Slots of limits and order that it holds, at most. */
  readonly holds: number;
  /** Who enqueued it, as W3C trace context; null where nobody traced. */
  readonly trace: string | null;
  /** Random, of this task for ever: what makes its id one that is never issued again. */
  readonly nonce: string;
  /** What it passed, if it has limits and the claim asked for it. */
  readonly passed?: Passed | undefined;
  /** It was in hand at three crashes, and its worker runs nothing beside it. */
  readonly alone?: true;
}

/** A success to be recorded: result is JSON text, or '' for none. */
export interface Success {
  readonly claim: Claim;
  readonly result: string;
  /** How many others its end may let through, at most: the slots it holds. */
  readonly holds: number;
}

/** Where the head of a source was: the tasks of a stream that need a slot of the gate, 0 for none. */
export interface Spot {
  readonly stream: number;
  readonly gate: number;
  readonly rank: number;
  readonly turn: string;
}

/** A look that took long, or began at spots. */
export interface Look {
  readonly ms: number;
  /** The heads that it found. */
  readonly heads: readonly Spot[];
}

interface StepCall {
  readonly worker: string;
  /** Random, and new for every call. */
  readonly token: string;
  readonly streams: readonly number[];
  readonly want: number;
  readonly successes: readonly Success[];
  readonly keepHistory: boolean;
  /** 1-based: the stream to begin with. */
  readonly from: number;
  /** Where to look, if looks take long; none: everywhere. */
  readonly spots: readonly Spot[];
  /** Whether to note, after this claim, that the worker sleeps (it came back short) or is awake. */
  readonly tells: boolean;
  /** Whether to tell of every task which limits it passed, for metrics. */
  readonly meters?: boolean;
}

export interface StepReply {
  readonly claimed: readonly ClaimedTask[];
  /** Successes that were no longer ours to record. */
  readonly refused: number;
  readonly look: Look | null;
  /**
   * For how long one of these had been due: the one that waited longest of those that were told, which are the
   * first of a stream and, if asked for, all with limits. Null if each of them was tried before.
   */
  readonly waitMs: number | null;
  /** Tasks of a run are to be placed: in streams of this worker, or many of them. */
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
  note: unknown;
}>({
  name: "step",
  text: `select id::text as id, stream, attempt, input, holds, trace, passed, nonce, note
    from sluice.step($1, $2, $3::text::int[], $4, $5::text::bigint[], $6::text::bigint[], $7, $8, $9, $10, $11::text::sluice.spot[], $12)`,
  params: ["int8", "int8", "text", "int4", "text", "text", "text", "bool", "int4", "bool", "text", "bool"],
  columns: ["id", "stream", "attempt", "input", "holds", "trace", "passed", "nonce", "note"],
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
  note: null,
];
// Everything but the note is null.
type NoteRow = [id: null, null, null, null, null, null, null, null, note: string];

/** What a step says beside its tasks; see the type `claimed` of the schema. */
interface StepNote {
  readonly refused?: number;
  readonly unplaced?: true;
  readonly lookMs?: number;
  readonly heads?: readonly (readonly [stream: number, gate: number, rank: number, turn: string])[];
}

const RECORD = "\u001e";

/** Settles what succeeded and claims more, in one round trip and one transaction. */
export async function step(connection: Connection, call: StepCall): Promise<StepReply> {
  const rows = await connection.rows(stepStatement, valuesOf(call));
  const claimed: ClaimedTask[] = [];
  let refused = 0;
  let look: Look | null = null;
  let unplaced = false;
  const reader = new PassedReader();
  let waitMs: number | null = null;
  for (const row of rows as (TaskRow | NoteRow)[]) {
    if (row[0] === null) {
      const note = JSON.parse(row[8]) as StepNote;
      refused += note.refused ?? 0;
      unplaced ||= note.unplaced ?? false;
      look = lookOf(note) ?? look;
      continue;
    }
    const [id, stream, attempt, text, holds, trace, told, nonce] = row;
    const claim = issueClaim(id, call.token);
    const input: unknown = JSON.parse(text);
    const read = typeof told === "string" ? reader.read(told) : undefined;
    if (read !== undefined && read.waitMs >= (waitMs ?? 0)) waitMs = read.waitMs;
    const passed = read === undefined || read.limits.length === 0 ? undefined : read;
    const inputLength = text.length;
    // One literal for tasks with limits and without: objects of two shapes slow down all that reads them.
    claimed.push({ claim, stream, attempt, input, inputLength, holds, trace, nonce, passed });
  }
  return { claimed, refused, look, waitMs, unplaced };
}

function lookOf({ lookMs, heads = [] }: StepNote): Look | null {
  if (lookMs === undefined) return null;
  return { ms: lookMs, heads: heads.map(([stream, gate, rank, turn]) => ({ stream, gate, rank, turn })) };
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
