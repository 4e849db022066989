import type pg from "pg";
import { send, type Desk } from "../client/enqueue.js";
import { idempotencyKeyOf, prepare, shared } from "../client/prepare.js";
import { describeError } from "../core/json.js";
import type { Clock, Logger } from "../core/ports.js";
import type { Listener } from "../postgres/listen.js";
import type { ContextDesk } from "./context.js";
import { mapItems } from "./map.js";
import type { Run } from "./run.js";
import { completeInTransaction } from "./transaction.js";

interface DeskOptions {
  readonly desk: Desk;
  readonly pool: pg.Pool;
  readonly listener: Listener | null;
  readonly keep: boolean;
  readonly resultBytesMax: number;
  readonly logger: Logger;
  /** The same, for what may repeat itself. */
  readonly log: Logger;
  readonly clock: Clock;
  /** A transaction has committed, and with it the completion of its run. */
  readonly onRecorded: (run: Run) => void;
}

/** What a handler's context asks of the worker it runs in. */
export function contextDesk(o: DeskOptions): ContextDesk {
  return {
    log: o.logger,
    now: () => o.clock.now(),
    async transaction(run, pending, fn) {
      const { pool, keep, resultBytesMax, desk, log } = o;
      const connections = { db: desk.db, pool, keep, resultBytesMax, log };
      const result = await completeInTransaction(connections, run, pending, fn);
      o.onRecorded(run);
      return result;
    },
    async prepare(terms, input, options) {
      const common = shared(terms, options);
      const idempotency = [idempotencyKeyOf(options.idempotencyKey)];
      const item = await prepare(terms, input, o.desk.payloadBytesMax);
      await o.desk.declarations.stream(terms);
      return async (tx) =>
        void (await send(o.desk, terms, common, { items: [item], idempotency }, tx));
    },
    map: (run, call) => mapItems(o, run, call),
    late({ claim, handler }, e) {
      const about = { task: claim.id, type: handler.contract.type };
      const error = describeError(e).message;
      o.log.warn("what a handler asked of its ctx failed after its task was over", {
        ...about,
        error,
      });
    },
  };
}
