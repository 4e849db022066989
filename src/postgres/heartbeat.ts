import { issueClaim } from "../core/claim.js";
import type { PressureState } from "../core/pressure.js";
import type { Connection } from "./connection.js";
import { PassedReader } from "./passed.js";
import { statement } from "./statement.js";
import type { ClaimedTask } from "./step.js";

export interface Registration {
  readonly name: string;
  readonly streams: readonly number[];
  readonly leaseMs: number;
  readonly capacity: number;
  /** Maximum number of connections that the worker's process may open. */
  readonly connections: number;
  /** Whether the worker can be on call. Default true. */
  readonly listens?: boolean;
}

const registerStatement = statement<{ id: string; on_call: boolean }>({
  name: "register",
  text: `select r.id::text as id, sluice.is_on_call(r.id) as on_call
    from sluice.register($1, $2::text::int[], $3, $4, $5, $6) r(id)`,
  params: ["text", "text", "int4", "int4", "int4", "bool"],
  columns: ["id", "on_call"],
});

/** Registers a new worker with its own lease. */
export async function register(
  connection: Connection,
  r: Registration,
): Promise<{ readonly id: string; readonly onCall: boolean }> {
  const [row] = await connection.run(registerStatement, [
    r.name,
    `{${r.streams.join(",")}}`,
    r.leaseMs,
    r.capacity,
    r.connections,
    r.listens ?? true,
  ]);
  return { id: row!.id, onCall: row!.on_call };
}

/** Whether wake-ups go to this worker, and how many workers of its kind sleep in reserve. */
export interface Duty {
  readonly onCall: boolean;
  readonly reserve: number;
}

const goOnCallStatement = statement<{ on_call: boolean; reserve: number }>({
  name: "go_on_call",
  text: "select on_call, reserve from sluice.go_on_call($1)",
  params: ["int8"],
  columns: ["on_call", "reserve"],
});

/** Requests a place on call for an idle worker in reserve. */
export async function goOnCall(connection: Connection, worker: string): Promise<Duty> {
  const [row] = await connection.run(goOnCallStatement, [worker]);
  return { onCall: row?.on_call === true, reserve: row?.reserve ?? 0 };
}

interface Beat {
  readonly availableCapacity: number;
  readonly memoryUsage: number;
  readonly draining: boolean;
  /** Whether the worker holds tasks. Default false. */
  readonly busy?: boolean;
  /** Default normal. */
  readonly pressure?: PressureState;
}

/** The reply to a heartbeat. */
export interface BeatReply extends Duty {
  readonly alive: boolean;
  readonly stops: readonly { readonly id: string; readonly reason: string | null }[];
  /** A suspect that this worker is asked to claim. Only a worker that holds no other task may claim one. */
  readonly suspect: string | null;
}

const beatStatement = statement<{
  alive: boolean;
  stops: string[] | null;
  stop_reasons: (string | null)[] | null;
  suspect: string | null;
  on_call: boolean | null;
  reserve: number | null;
}>({
  name: "beat",
  text: `select alive, stops::text[] as stops, stop_reasons, suspect::text as suspect, on_call, reserve
    from sluice.beat($1, $2, $3, $4, $5, $6::text::text[], $7)`,
  params: ["int8", "int4", "int8", "bool", "text", "text", "bool"],
  columns: ["alive", "stops", "stop_reasons", "suspect", "on_call", "reserve"],
});

/** Renews the lease on everything the worker holds. */
export async function beat(connection: Connection, worker: string, b: Beat): Promise<BeatReply> {
  const [row] = await connection.run(beatStatement, [
    worker,
    b.availableCapacity,
    b.memoryUsage,
    b.draining,
    b.pressure?.state ?? "normal",
    `{${b.pressure?.reasons.join(",") ?? ""}}`,
    b.busy ?? false,
  ]);
  const stops = (row?.stops ?? []).map((id, i) => ({ id, reason: row?.stop_reasons?.[i] ?? null }));
  return {
    alive: row?.alive ?? false,
    stops,
    suspect: row?.suspect ?? null,
    onCall: row?.on_call !== false,
    reserve: row?.reserve ?? 0,
  };
}

const unregisterStatement = statement<{ released: number }>({
  name: "retire",
  text: "select sluice.retire($1) as released",
  params: ["int8"],
  columns: ["released"],
});

/** Unregisters a worker; tasks it still holds are released without using up an attempt. */
export async function unregister(connection: Connection, worker: string): Promise<number> {
  const [row] = await connection.run(unregisterStatement, [worker]);
  return row?.released ?? 0;
}

const survivedStatement = statement<{ left: string[] }>({
  name: "survived",
  text: "select sluice.survived($1::text::bigint[])::text[] as left",
  params: ["text"],
  columns: ["left"],
});

/**
 * Reports workers that were cut off for longer than their lease but did not crash: the tasks they held are not to
 * blame. Returns the workers that must be reported again.
 */
export async function survived(connection: Connection, workers: readonly string[]): Promise<string[]> {
  const [row] = await connection.run(survivedStatement, [`{${workers.join(",")}}`]);
  return row?.left ?? [];
}

const releaseUnknownStatement = statement<{ released: number }>({
  name: "release_unknown",
  text: "select sluice.release_unknown($1, $2::text::bigint[]) as released",
  params: ["int8", "text"],
  columns: ["released"],
});

/** Releases tasks that the worker holds under claims whose replies never arrived. */
export async function releaseUnknown(
  connection: Connection,
  worker: string,
  knownTokens: readonly string[],
): Promise<number> {
  const [row] = await connection.run(releaseUnknownStatement, [worker, `{${knownTokens.join(",")}}`]);
  return row?.released ?? 0;
}

// The slots of a suspect are not counted, so assume the most that a task can hold.
const SLOTS_MAX = 17;

const claimSuspectStatement = statement<{
  id: string;
  stream: number;
  attempt: number;
  input: unknown;
  trace: string | null;
  passed: string;
  nonce: string;
}>({
  name: "claim_suspect",
  text: "select id::text as id, stream, attempt, input, trace, passed, nonce from sluice.claim_suspect($1, $2, $3)",
  params: ["int8", "int8", "int8"],
  columns: ["id", "stream", "attempt", "input", "trace", "passed", "nonce"],
});

/** Claims a reserved suspect, to run it alone. Null if it is gone or its limits are full right now. */
export async function claimSuspect(
  connection: Connection,
  call: { readonly worker: string; readonly token: string; readonly id: string },
): Promise<ClaimedTask | null> {
  const [row] = await connection.run(claimSuspectStatement, [call.worker, call.token, call.id]);
  if (row === undefined) return null;
  return {
    claim: issueClaim(row.id, call.token),
    stream: row.stream,
    attempt: row.attempt,
    input: row.input,
    // It runs alone, so it needs no share of the input budget.
    inputLength: 0,
    holds: SLOTS_MAX,
    trace: row.trace,
    nonce: row.nonce,
    passed: new PassedReader().read(row.passed),
    alone: true,
  };
}

const releaseSuspectStatement = statement<{ release_suspect: string }>({
  name: "release_suspect",
  text: "select sluice.release_suspect($1)",
  params: ["int8"],
  columns: ["release_suspect"],
});

/** Releases the suspect that is reserved for the worker, so that another worker may claim it. */
export async function releaseSuspect(connection: Connection, worker: string): Promise<void> {
  await connection.run(releaseSuspectStatement, [worker]);
}
