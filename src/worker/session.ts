import type { Claim } from "../core/claim.js";
import type { Execution } from "./execution.js";

/**
 * One registration in the database: an id, a lease, and the tasks held under it. A worker begins a new session when its
 * lease is lost, and also when the reply to a claim is lost. In the second case, the old session claims nothing more,
 * hands back tasks it never saw, and ends when its last task has settled.
 */
export class Session {
  readonly id: string;
  readonly executions = new Map<string, Execution>();
  /** By this process's monotonic clock, counted from when the last good heartbeat was sent. */
  leaseUntilMs: number;
  /** A reply was lost: the session may hold tasks that this worker never saw. */
  doubtful = false;
  /** Since when it is doubtful, by this process's monotonic clock. */
  doubtfulSinceMs = 0;
  lost = false;
  /** Its row may say that it has no room: then enqueues do not notify it. */
  toldFull = false;
  /** How long its process stalled since the last good heartbeat. */
  stalledMs = 0;
  /** Outcomes of this session on their way to the database. */
  settling = 0;
  /** Tokens of claims whose reply may still arrive. */
  readonly asking = new Set<string>();
  /** Outcomes in statements that are in flight. */
  readonly sent = new Set<readonly { readonly claim: Claim }[]>();

  constructor(id: string, leaseUntilMs: number) {
    this.id = id;
    this.leaseUntilMs = leaseUntilMs;
  }

  /**
   * The tokens under which the session holds tasks, or may still receive some. Tokens of ended tasks that wait to be
   * recorded are not included; the outbox has them.
   */
  tokens(): string[] {
    const claims = [...this.executions.values(), ...[...this.sent].flat()].map(({ claim }) => claim.token);
    // guard: a claim under way is not unknown -> test/worker/properties.test.ts: "tasks of a lost claim reply are released, and do not count as a crash"
    return [...new Set(/* guard:asking */ [...claims, ...this.asking] /* end */)];
  }

  get idle(): boolean {
    return this.executions.size === 0 && this.settling === 0 && this.asking.size === 0;
  }
}
