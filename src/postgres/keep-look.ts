import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

/** What a look found to do, and when to look again. */
export interface KeepLook {
  /** We are the one of all workers that does what is shared. */
  readonly leads: boolean;
  /** Tasks stand somewhere, or run. */
  readonly live: boolean;
  /** A lease has run out. */
  readonly dead: boolean;
  /** Scheduled tasks are due. */
  readonly due: boolean;
  /** Schedules are due. */
  readonly ticks: boolean;
  /** Workflow runs have something to do. */
  readonly runs: boolean;
  /** There are fan-outs of handlers. */
  readonly flows: boolean;
  /** There are runs that have ended. */
  readonly ended: boolean;
  readonly nextMs: number;
  /** When the next scheduled task is due, null if there is none. */
  readonly dueMs: number | null;
}

interface LookRow extends Omit<KeepLook, "nextMs" | "dueMs"> {
  readonly next_ms: number;
  readonly due_ms: number | null;
}

const lookStatement = statement<LookRow>({
  name: "keep_look",
  text: `select leads, live, dead, due, ticks, runs, flows, ended, next_ms, due_ms
    from sluice.keep_look($1, $2, $3, $4)`,
  params: ["int8", "int4", "int4", "int4"],
  columns: ["leads", "live", "dead", "due", "ticks", "runs", "flows", "ended", "next_ms", "due_ms"],
});

/** How long the next look may be put off. */
export interface LookIntervals {
  /** If there is no work. */
  readonly quietMs: number;
  /** If there is some. */
  readonly liveMs: number;
  /** If something waits for the next look. */
  readonly pollMs: number;
}

/** Looks at all that must happen without anyone asking. Who finds no leader becomes it. */
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

/** If we are the leader, another takes over. */
export async function keepLeave(connection: Connection, keeper: string): Promise<void> {
  await connection.run(leaveStatement, [keeper]);
}
