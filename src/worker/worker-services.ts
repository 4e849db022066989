import type { Layers } from "../config/resolve.js";
import type { Logger } from "../core/ports.js";
import type { History } from "../keeper/keeper.js";
import type { Database } from "../postgres/database.js";
import type { Listener } from "../postgres/listen.js";
import type { Declarations } from "../tasks/declarations.js";
import type { EnqueueServices } from "../tasks/enqueue.js";

/** What a worker needs from the Sluice it belongs to. */
export interface WorkerServices extends EnqueueServices {
  readonly db: Database;
  readonly declarations: Declarations;
  readonly listener: Listener | null;
  readonly logger: Logger;
  /** At most a line a second about the same trouble. */
  readonly log: Logger;
  readonly history: History;
  readonly resultBytesMax: number;
  /** What settings come from besides code. */
  readonly layers: Layers;
  readonly apiConnections: number;
  /** Whether the process has no other worker on the same connections for enqueue and queries. */
  readonly first: boolean;
  /** It has stopped, or could not start. */
  readonly onStopped: () => void;
}
