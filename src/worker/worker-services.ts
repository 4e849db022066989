import type { Layers } from "../config/resolve.js";
import type { Logger } from "../core/ports.js";
import type { History } from "../keeper/keeper.js";
import type { Database } from "../postgres/database.js";
import type { Listener } from "../postgres/listen.js";
import type { Declarations } from "../tasks/declarations.js";
import type { EnqueueServices } from "../tasks/enqueue.js";
import type { Hooks } from "./hooks.js";

/** The services that a worker needs from its Sluice instance. */
export interface WorkerServices extends EnqueueServices {
  readonly db: Database;
  readonly declarations: Declarations;
  readonly listener: Listener | null;
  readonly logger: Logger;
  /** Logs at most one line per second about the same problem. */
  readonly log: Logger;
  /** The listeners and the middleware. */
  readonly hooks: Hooks;
  readonly history: History;
  readonly resultBytesMax: number;
  /** Sources of settings besides code. */
  readonly layers: Layers;
  readonly apiConnections: number;
  /** Whether the process has no other worker on the same connections for enqueue and queries. */
  readonly first: boolean;
  /** The worker has stopped, or could not start. */
  readonly onStopped: () => void;
}
