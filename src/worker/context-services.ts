import { AsyncResource } from "node:async_hooks";
import { describeError } from "../core/json.js";
import type { Clock, Logger } from "../core/ports.js";
import type { Listener } from "../postgres/listen.js";
import { mapItems, type MapServices } from "../runs/map.js";
import { oneOf, sendOne, type EnqueueServices } from "../tasks/enqueue.js";
import { idempotencyKeyOf, prepare, shared } from "../tasks/prepare.js";
import { boundHere } from "../trace/enqueue.js";
import type { ContextServices } from "./context.js";
import type { Lending } from "./held.js";
import { excusing } from "./outage.js";
import type { ProgressReporter } from "./progress.js";
import { completeInTransaction, inTransaction } from "./transaction.js";
import type { Execution } from "./execution.js";

interface ContextServicesOptions {
  readonly services: EnqueueServices;
  readonly lending: Lending;
  readonly listener: Listener | null;
  readonly keepHistory: boolean;
  readonly resultBytesMax: number;
  readonly logger: Logger;
  /** The same logger, for messages that may repeat. */
  readonly log: Logger;
  readonly clock: Clock;
  readonly progress: ProgressReporter;
  /** A transaction committed, and with it the completion of its execution. */
  readonly onRecorded: (execution: Execution) => void;
  /** The reply to a commit was lost: whether the execution is completed is unknown. */
  readonly onUnconfirmed?: () => void;
}

/** The services that the worker provides to a handler's context. */
export function contextServices(o: ContextServicesOptions): ContextServices {
  // A handler awaits its transaction, but the worker must not continue in the handler's asynchronous context: that
  // context would reach the handlers of the tasks claimed next.
  const recorded = AsyncResource.bind(o.onRecorded);
  return {
    tracing: o.services.tracing,
    log: o.logger,
    now: () => o.clock.now(),
    async transaction(execution, pending, fn) {
      const { lending, keepHistory, resultBytesMax, services, log, onUnconfirmed } = o;
      const connections = { db: services.db, lending, keepHistory, resultBytesMax, log, onUnconfirmed };
      const result = await completeInTransaction(connections, execution, pending, fn);
      recorded(execution);
      return result;
    },
    async prepare(execution, terms, input, options) {
      const common = shared(terms, options);
      const idempotency = [idempotencyKeyOf(options.idempotencyKey)];
      const item = await prepare(terms, input, o.services.payloadBytesMax);
      await excusing(execution, o.services.declarations.stream(terms));
      // The enqueue may be sent at completion, which is not part of the handler.
      return boundHere(o.services.tracing, async (tx) => {
        const sent = sendOne(o.services, terms, common, { items: [item], idempotency }, tx);
        return oneOf(await excusing(execution, sent));
      });
    },
    progress: (execution, fraction, data) => o.progress.report(execution, fraction, data),
    map(execution, call) {
      const { services, listener, lending } = o;
      const mapServices: MapServices = {
        services,
        listener,
        excusing: (asked) => excusing(execution, asked),
        inTransaction: (work) => inTransaction(lending, execution, ({ tx }) => work(tx)),
      };
      return mapItems(mapServices, execution, call);
    },
    late({ claim, handler }, e) {
      const about = { task: claim.id, type: handler.contract.type };
      const error = describeError(e).message;
      o.log.warn("a call on ctx failed after its task had ended", {
        ...about,
        error,
      });
    },
  };
}
