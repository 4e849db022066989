/** What is asked to tell whether a worker can take tasks. */
interface Condition {
  readonly state: "new" | "running" | "stopping" | "stopped";
  /** Since the last heartbeat that was answered was sent; null without a session. */
  readonly heartbeatAgeMs: number | null;
  readonly leaseMs: number;
  /** It empties itself for a task that was in hand at three crashes, or runs it. */
  readonly suspecting: boolean;
}

// A worker beats every third of its lease, and at least every five seconds: this is two beats, and a little.
const FRESH_SHARE = 0.7;
const FRESH_MS_MAX = 11_000;

/** Why a worker does not claim, in words; nothing if it does. */
export function unready(c: Condition): string[] {
  if (c.state !== "running") return [c.state === "new" ? "starting" : c.state];
  const reasons = c.suspecting ? ["it runs a suspect task alone"] : [];
  const freshMs = Math.min(FRESH_MS_MAX, c.leaseMs * FRESH_SHARE);
  if (c.heartbeatAgeMs === null) reasons.push("it has no lease");
  else if (c.heartbeatAgeMs > freshMs) reasons.push(`its last heartbeat is ${Math.round(c.heartbeatAgeMs)} ms old`);
  return reasons;
}
