/** The state that decides whether a worker can take tasks. */
interface Condition {
  readonly state: "new" | "running" | "stopping" | "stopped";
  /** Time since the last answered heartbeat was sent; null without a session. */
  readonly heartbeatAgeMs: number | null;
  readonly leaseMs: number;
  /** The worker is draining for a task that was executing at three crashes, or is running it. */
  readonly suspecting: boolean;
}

// A worker sends a heartbeat every third of its lease, and at least every five seconds. This is two heartbeats, and a
// little more.
const FRESH_SHARE = 0.7;
const FRESH_MS_MAX = 11_000;

/** The reasons why a worker does not claim, in words; empty if it does. */
export function unready(c: Condition): string[] {
  if (c.state !== "running") return [c.state === "new" ? "starting" : c.state];
  const reasons = c.suspecting ? ["the worker runs a suspect task alone"] : [];
  const freshMs = Math.min(FRESH_MS_MAX, c.leaseMs * FRESH_SHARE);
  if (c.heartbeatAgeMs === null) reasons.push("the worker has no lease");
  else if (c.heartbeatAgeMs > freshMs) reasons.push(`the last heartbeat is ${Math.round(c.heartbeatAgeMs)} ms old`);
  return reasons;
}
