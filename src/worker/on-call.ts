import type { Logger } from "../core/ports.js";
import { tellTrouble } from "../postgres/errors.js";
import { goOnCall, type Duty } from "../postgres/heartbeat.js";
import type { Connection } from "../postgres/connection.js";
import type { Listener } from "../postgres/listen.js";
import type { Session } from "./session.js";

interface OnCallOptions {
  readonly connection: Connection;
  readonly listener: Pick<Listener, "listens" | "connected" | "need"> | null;
  /** The session that claims, or null while there is none. */
  readonly current: () => Session | null;
  readonly log: Logger;
}

// All workers in reserve together poll about every 20 ms, and each of them between once and ten times a second. So
// tasks that no on-call worker could take wait hardly longer than for a notification.
const RESERVE_POLL_MS = 20;
const RESERVE_POLL_MS_MIN = 100;
const RESERVE_POLL_MS_MAX = 1_000;
const POLLS_PER_ASK = 4;

/**
 * Whether wake notifications reach this worker. A few workers of a kind are on call: they listen, and enqueue notifies
 * them. The others are in reserve. They do not listen, because NOTIFY signals every listener; they poll, and replace an
 * on-call worker that has become busy.
 */
export class OnCall {
  readonly #o: OnCallOptions;
  #duty: Duty = { onCall: true, reserve: 0 };
  #release: (() => void) | null = null;
  #asking = false;
  #polls = 0;

  constructor(options: OnCallOptions) {
    this.#o = options;
  }

  /** The database reports the duty of the claiming session. */
  told(duty: Duty): void {
    this.#duty = duty;
    if (!duty.onCall) this.stop();
    else this.#release ??= this.#o.listener?.need({ lingers: false }) ?? null;
  }

  /** Whether this worker may poll rarely: it receives notifications, or is not meant to receive them. */
  get listening(): boolean {
    const { listener } = this.#o;
    return listener !== null && (this.#duty.onCall ? listener.listens : listener.connected);
  }

  /** Whether workers of the same kind are in reserve. */
  get hasReserve(): boolean {
    return !this.#duty.onCall || this.#duty.reserve > 0;
  }

  get inReserve(): boolean {
    return !this.#duty.onCall;
  }

  /** The longest delay of a poll. */
  get pollMsMax(): number {
    if (this.#duty.onCall) return Number.POSITIVE_INFINITY;
    const pollMs = Math.max(this.#duty.reserve * RESERVE_POLL_MS, RESERVE_POLL_MS_MIN);
    return Math.min(pollMs, RESERVE_POLL_MS_MAX);
  }

  /** The worker sleeps and is idle. In reserve, it asks at every fourth poll whether it is needed on call. */
  idlePoll(): void {
    const session = this.#o.current();
    if (this.#duty.onCall || this.#asking || session === null) return;
    if (this.#polls++ % POLLS_PER_ASK > 0) return;
    this.#asking = true;
    void this.#ask(session).finally(() => (this.#asking = false));
  }

  stop(): void {
    this.#release?.();
    this.#release = null;
  }

  async #ask(session: Session): Promise<void> {
    try {
      const duty = await goOnCall(this.#o.connection, session.id);
      if (session === this.#o.current()) this.told(duty);
    } catch (e) {
      tellTrouble(this.#o.log, "could not request to go on call", e);
    }
  }
}
