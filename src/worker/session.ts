import type { Claim } from "../core/claim.js";
import type { Execution } from "./execution.js";

/**
 * One registration in the database: an id, a lease, and what is held under it. A worker begins a new
 * session when its lease is lost, and also when the reply to a claim was lost: then this session
 * claims nothing more, hands back what it does not know of, and ends when its last task has settled.
 */
export class Session {
  readonly id: string;
  readonly executions = new Map<string, Execution>();
  /** By our monotonic clock, counted from when the last good heartbeat was sent. */
  leaseUntilMs: number;
  /** A reply was lost: it may hold tasks that we have never seen. */
  doubtful = false;
  /** Since when, by our monotonic clock. */
  doubtfulSinceMs = 0;
  lost = false;
  /** Its row may say that it takes nothing: then no bell is rung for it. */
  toldFull = false;
  /** For how long its process stood still since the last good heartbeat. */
  stalledMs = 0;
  /** Outcomes of this session that are on their way to the database. */
  settling = 0;
  /** Tokens of claims whose reply may still come. */
  readonly asking = new Set<string>();
  /** Outcomes in statements that are under way. */
  readonly sent = new Set<readonly { readonly claim: Claim }[]>();

  constructor(id: string, leaseUntilMs: number) {
    this.id = id;
    this.leaseUntilMs = leaseUntilMs;
  }

  /**
   * The tokens under which it knows to hold something, or may yet learn that it does. What has ended
   * and waits to be recorded is not here: the outbox knows.
   */
  tokens(): string[] {
    const claims = [...this.executions.values(), ...[...this.sent].flat()].map(({ claim }) => claim.token);
    // guard: a claim under way is not unknown -> test/worker/properties.test.ts: "a lost claim reply is handed back and is no crash"
    return [...new Set(/* guard:asking */ [...claims, ...this.asking] /* end */)];
  }

  get idle(): boolean {
    return this.executions.size === 0 && this.settling === 0 && this.asking.size === 0;
  }
}
