import type { Claim } from "../../core/claim.js";
import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** A fan-out that a handler requests, identified by its task and a name. */
export interface MapCall {
  readonly worker: string;
  readonly claim: Claim;
  readonly name: string;
  readonly stream: number;
  readonly total: number;
  /** null: all at once. */
  readonly window: number | null;
  readonly onError: "failFast" | "finish" | "collect";
}

const mapStatement = statement<{ run: string; fresh: boolean }>({
  name: "workflow_map",
  text: "select run::text as run, fresh from sluice.workflow_map($1, $2, $3, $4, $5, $6, $7, $8)",
  params: ["int8", "int8", "int8", "text", "int4", "int4", "int4", "text"],
  columns: ["run", "fresh"],
});

/**
 * Finds the fan-out with this name, or creates it. Fresh: the caller must place its tasks (`placeTasks` with node 1)
 * and call `placed` in the same transaction. Throws `lease_lost` if the task is not ours.
 */
export async function openMap(db: Database, call: MapCall, tx: Queryable): Promise<{ run: string; fresh: boolean }> {
  const { worker, claim, name, stream, total, window, onError } = call;
  const values = [worker, claim.id, claim.token, name, stream, total, window, onError];
  return db.one(mapStatement, values, tx);
}

/** An existing fan-out. */
export interface FoundMap {
  readonly run: string;
  readonly stream: number;
  readonly state: "running" | "succeeded" | "failed" | "cancelled";
  /** Digest of its inputs, as `markMap` stored it. */
  readonly digest: string | null;
}

const findStatement = statement<FoundMap>({
  name: "workflow_map_find",
  text: "select run::text as run, stream, digest, state from sluice.workflow_map_find($1, $2)",
  params: ["int8", "text"],
  columns: ["run", "stream", "digest", "state"],
});

/** A task's fan-out with this name, or null. */
export async function findMap(db: Database, parent: string, name: string): Promise<FoundMap | null> {
  const [found] = await db.run(findStatement, [parent, name]);
  return found ?? null;
}

const markStatement = statement<{ marked: string }>({
  name: "workflow_map_mark",
  text: "select sluice.workflow_map_mark($1, $2)::text as marked",
  params: ["int8", "text"],
  columns: ["marked"],
});

/** Stores the digest of a fan-out's inputs, in the transaction that creates the fan-out. */
export async function markMap(db: Database, run: string, digest: string, tx: Queryable): Promise<void> {
  await db.run(markStatement, [run, digest], tx);
}
