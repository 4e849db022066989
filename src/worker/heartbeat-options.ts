import type { PressureState } from "../core/pressure.js";
import type { Clock, Logger } from "../core/ports.js";
import type { Connection } from "../postgres/connection.js";
import type { Duty, Registration } from "../postgres/heartbeat.js";
import type { Session } from "./session.js";

export interface HeartbeatOptions {
  readonly connection: Connection;
  readonly registration: Registration;
  /** How many more tasks this worker can take. */
  readonly free: () => number;
  /** Whether no task is claimed or executing. Default: never. */
  readonly idle?: () => boolean;
  /** The worker's pressure state. Default: normal. */
  readonly pressure?: () => PressureState;
  readonly clock: Clock;
  readonly log: Logger;
  /** The tokens under which a session is known to hold tasks. */
  readonly known: (session: Session) => string[];
  readonly onBegan: (session: Session) => void;
  /** Receives whether the claiming session is on call. */
  readonly onDuty?: (duty: Duty) => void;
  /** Whether workers of the same kind are in reserve, perhaps including this one. */
  readonly hasReserve?: () => boolean;
  /** Whether this worker is in reserve: it receives no notification of a cancel. */
  readonly inReserve?: () => boolean;
  readonly onLost: (session: Session) => void;
  readonly onStop: (session: Session, id: string, reason: string | null) => void;
  /** The database has recorded again that this worker has room. Enqueues before that sent no notification. */
  readonly onRoom: () => void;
  /** A suspect is reserved for this worker: drain the worker, then claim the suspect alone. */
  readonly onSuspect: (session: Session, id: string) => void;
}
