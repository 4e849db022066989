import type { Pressed } from "../core/claim-policy.js";
import type { Clock, Logger } from "../core/ports.js";
import type { Connection } from "../postgres/connection.js";
import type { Settlement } from "../postgres/settle.js";
import type { Crew } from "./crew.js";
import type { Meter } from "./metrics/meter.js";
import type { Outbox } from "./outbox.js";
import type { Payloads } from "./payloads.js";
import type { Permits } from "./permits.js";
import type { Session } from "./session.js";

/** What a claimer works with. */
export interface ClaimerOptions {
  /** One statement at a time on each. */
  readonly connections: readonly Connection[];
  readonly streams: readonly number[];
  readonly permits: Permits;
  readonly payloads: Payloads;
  readonly outbox: Outbox;
  readonly crew: Crew;
  /** Not set: see BatchSize. */
  readonly claimBatchSize: number | undefined;
  /** What makes claims smaller just now; nothing if it is not given. */
  readonly pressed?: () => Pressed;
  readonly pollIntervalMs: number;
  readonly keepHistory: boolean;
  /** Whether a bell can wake us, so that it is worth telling that we sleep. */
  readonly bell: boolean;
  /** Whether the bell is heard just now; if it is not given it never is. */
  readonly listening?: () => boolean;
  /** How long a poll may be put off at most, where rings do not reach us; without a bound if it is not given. */
  readonly pollMsMax?: () => number;
  /** It polls rarely, because it sleeps and has nothing in hand. */
  readonly onDoze?: () => void;
  readonly clock: Clock;
  readonly log: Logger;
  /** Who wants to know what happens; nobody by default. */
  readonly meter?: Meter;
  /** The session that claims, or null while there is none. */
  readonly current: () => Session | null;
  /** Whether the session still has its lease, by the clock: asked before each handler starts. */
  readonly holds: (session: Session) => boolean;
  /** A reply was lost; the session may hold what we have never seen. */
  readonly onDoubt: (session: Session) => void;
  /** The database says that the session's lease is gone. */
  readonly onLost: (session: Session) => void;
  /** There is something to do, or was. */
  readonly onBusy?: () => void;
  /** These were recorded. */
  readonly onSettled?: (items: readonly Settlement[]) => void;
  /** Tasks of a run are to be placed. */
  readonly onUnplaced: () => void;
}
