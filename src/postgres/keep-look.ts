import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

/** The work that a keeper's poll found, and when to poll again. */
export interface KeepLook {
  /** This keeper is the leader: of all workers, it alone does the shared work. */
  readonly leads: boolean;
  /** Tasks are queued or running. */
  readonly live: boolean;
  /** A lease has expired. */
  readonly dead: boolean;
  /** Scheduled tasks are due. */
  readonly due: boolean;
  /** Schedules are due. */
  readonly ticks: boolean;
  /** Workflow runs have work to do. */
  readonly runs: boolean;
  /** There are handlers' fan-outs. */
  readonly maps: boolean;
  /** There are runs that have ended. */
  readonly ended: boolean;
  readonly nextMs: number;
  /** Time until the next scheduled task is due; null if there is none. */
  readonly dueMs: number | null;
}

interface LookRow extends Omit<KeepLook, "nextMs" | "dueMs"> {
  readonly next_ms: number;
  readonly due_ms: number | null;
}

const lookStatement = statement<LookRow>({
  name: "keeper_poll",
  text: `select leads, live, dead, due, ticks, runs, maps, ended, next_ms, due_ms
    from sluice.keeper_poll($1, $2, $3, $4)`,
  params: ["int8", "int4", "int4", "int4"],
  columns: ["leads", "live", "dead", "due", "ticks", "runs", "maps", "ended", "next_ms", "due_ms"],
});

/** How long the next poll may be delayed. */
export interface LookIntervals {
  /** While there is no work. */
  readonly quietMs: number;
  /** While there is work. */
  readonly liveMs: number;
  /** While something waits for the next poll. */
  readonly pollMs: number;
}

/** Polls for everything that must happen without a request. A keeper that finds no leader becomes the leader. */
export async function keepLook(
  connection: Connection,
  keeper: string,
  { quietMs, liveMs, pollMs }: LookIntervals,
): Promise<KeepLook> {
  const [row] = await connection.run(lookStatement, [keeper, quietMs, liveMs, pollMs]);
  const { next_ms, due_ms, ...found } = row!;
  return { ...found, nextMs: next_ms, dueMs: due_ms };
}

const leaveStatement = statement<{ keep_leave: string }>({
  name: "keep_leave",
  text: "select sluice.keep_leave($1)",
  params: ["int8"],
  columns: ["keep_leave"],
});

/** Resigns as the leader, if this keeper is it; another keeper takes over. */
export async function keepLeave(connection: Connection, keeper: string): Promise<void> {
  await connection.run(leaveStatement, [keeper]);
}
