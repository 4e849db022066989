import type { Pressed } from "../core/claim-policy.js";
import type { Clock, Logger } from "../core/ports.js";
import type { Connection } from "../postgres/connection.js";
import type { Settlement } from "../postgres/settle.js";
import type { Executions } from "./executions.js";
import type { Meter } from "./metrics/meter.js";
import type { Outbox } from "./outbox.js";
import type { Payloads } from "./payloads.js";
import type { Permits } from "./permits.js";
import type { Reports } from "./reports.js";
import type { Session } from "./session.js";

/** The options of a claimer. */
export interface ClaimerOptions {
  /** Each connection runs one statement at a time. */
  readonly connections: readonly Connection[];
  readonly streams: readonly number[];
  readonly permits: Permits;
  readonly payloads: Payloads;
  readonly outbox: Outbox;
  readonly executions: Executions;
  /** If not set, see BatchSize. */
  readonly claimBatchSize: number | undefined;
  /** What currently makes claims smaller. Default: nothing. */
  readonly pressed?: () => Pressed;
  readonly pollIntervalMs: number;
  readonly keepHistory: boolean;
  /** Whether a notification can wake this worker, so that reporting that it sleeps is worthwhile. */
  readonly bell: boolean;
  /** Whether notifications currently arrive. Default: never. */
  readonly listening?: () => boolean;
  /** The longest delay of a poll where notifications do not reach this worker. Default: no bound. */
  readonly pollMsMax?: () => number;
  /** The worker polls rarely, because it sleeps and is idle. */
  readonly onIdlePoll?: () => void;
  readonly clock: Clock;
  readonly log: Logger;
  /** Receives measurements. Default: none. */
  readonly meter?: Meter;
  /** The session that claims, or null while there is none. */
  readonly current: () => Session | null;
  /** Whether the session still has its lease by the clock. Checked before each handler starts. */
  readonly holds: (session: Session) => boolean;
  /** A reply was lost; the session may hold tasks that this worker never saw. */
  readonly onDoubt: (session: Session) => void;
  /** The database reports that the session's lease is gone. */
  readonly onLost: (session: Session) => void;
  /** There is work, or was. */
  readonly onBusy?: () => void;
  /** The statement with these outcomes was answered; `recorded` has the ids of those that the database recorded. */
  readonly onSettled?: (items: readonly Settlement[], recorded: readonly string[]) => void;
  /** Reports what was recorded and claimed to listeners. Default: none. */
  readonly reports?: Reports;
  /** A run has tasks that need to be placed. */
  readonly onUnplaced: () => void;
}
