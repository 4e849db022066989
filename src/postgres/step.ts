import type { Claim } from "../core/claim.js";
import { issueClaim } from "../core/claim.js";
import type { Line } from "./line.js";
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
}

/** A success to be recorded: result is JSON text, or '' for none. */
export interface Success {
  readonly claim: Claim;
  readonly result: string;
  /** How many others its end may let through, at most: the slots it holds. */
  readonly holds: number;
}

interface StepCall {
  readonly worker: string;
  /** Random, and new for every call. */
  readonly token: string;
  readonly streams: readonly number[];
  readonly claim: number;
  readonly successes: readonly Success[];
  readonly keep: boolean;
  /** 1-based: the stream to begin with. */
  readonly from: number;
  /** Whether to note, after this claim, that the worker sleeps (it came back short) or is awake. */
  readonly tells: boolean;
}

export interface StepReply {
  readonly claimed: readonly ClaimedTask[];
  /** Successes that were no longer ours to record. */
  readonly refused: number;
}

const stepStatement = statement<{
  id: string;
  stream: number;
  attempt: number;
  input: unknown;
  holds: number;
}>({
  name: "step",
  text: `select id::text as id, stream, attempt, input, holds
    from sluice.step($1, $2, $3::text::int[], $4, $5::text::bigint[], $6::text::bigint[], $7, $8, $9, $10)`,
  params: ["int8", "int8", "text", "int4", "text", "text", "text", "bool", "int4", "bool"],
  columns: ["id", "stream", "attempt", "input", "holds"],
});

const RECORD = "\u001e";

/** Settles what succeeded and claims more, in one round trip and one transaction. */
export async function step(line: Line, call: StepCall): Promise<StepReply> {
  const rows = await line.rows(stepStatement, valuesOf(call));
  const claimed: ClaimedTask[] = [];
  let refused = 0;
  for (const row of rows as [string | null, number, number, string, number][]) {
    const [id, stream, attempt, text, holds] = row;
    if (id === null) {
      refused = attempt;
      continue;
    }
    const claim = issueClaim(id, call.token);
    const input: unknown = JSON.parse(text);
    claimed.push({ claim, stream, attempt, input, inputLength: text.length, holds });
  }
  return { claimed, refused };
}

function valuesOf({ successes, ...call }: StepCall): unknown[] {
  let ids: string | null = null;
  let tokens: string | null = null;
  let results: string | null = null;
  if (successes.length > 0) {
    ids = `{${successes.map((s) => s.claim.id).join(",")}}`;
    tokens = `{${successes.map((s) => s.claim.token).join(",")}}`;
    if (successes.some((s) => s.result !== ""))
      results = successes.map((s) => s.result).join(RECORD);
  }
  return [
    call.worker,
    call.token,
    `{${call.streams.join(",")}}`,
    call.claim,
    ids,
    tokens,
    results,
    call.keep,
    call.from,
    call.tells,
  ];
}
