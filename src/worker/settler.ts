import { isSluiceError } from "../core/error.js";
import type { Clock } from "../core/ports.js";
import type { Connection } from "../postgres/connection.js";
import { settle, type Settlement } from "../postgres/settle.js";
import { tellFailures, type Outcome } from "./failure.js";
import type { Meter } from "./metrics/meter.js";
import type { Outbox, Parcel } from "./outbox.js";
import type { Permits } from "./permits.js";
import type { IdleConnections } from "./idle-connections.js";
import type { Session } from "./session.js";
import type { Splitter } from "./split.js";

interface SettlerOptions {
  readonly outbox: Outbox;
  readonly permits: Permits;
  readonly idleConnections: IdleConnections;
  readonly splitter: Splitter;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly onLost: (session: Session) => void;
  /** The statement failed for a reason other than its contents. */
  readonly onTrouble: (e: unknown) => void;
  readonly onRefused: (tasks: number) => void;
  /** The statement with these outcomes was answered; `recorded` has the ids of those that the database recorded. */
  readonly onSettled?: ((items: readonly Settlement[], recorded: readonly string[]) => void) | undefined;
  /** A statement ended. A failed task may have passed its slots to a waiting task that this worker can claim. */
  readonly onOver: () => void;
}

/** Records all outcomes except successes, one statement at a time. */
export class Settler {
  readonly #o: SettlerOptions;
  #busy = false;

  constructor(options: SettlerOptions) {
    this.#o = options;
  }

  get busy(): boolean {
    return this.#busy;
  }

  pump(): void {
    const { outbox, idleConnections, clock, splitter } = this.#o;
    if (this.#busy || idleConnections.count === 0) return;
    const parcel = outbox.takeRefusedOthers(clock.now()) ?? outbox.takeOthers(splitter.settles.size);
    if (parcel === null) return;
    const connection = idleConnections.take()!;
    this.#busy = true;
    let answered = false;
    const sent = this.#send(connection, parcel).then((ok) => (answered = ok));
    void sent.finally(() => {
      this.#busy = false;
      idleConnections.put(connection, !answered);
      this.#o.onOver();
    });
  }

  /** Returns false if the statement failed. */
  async #send(connection: Connection, parcel: Parcel<Outcome>): Promise<boolean> {
    const { permits, outbox, splitter, meter } = this.#o;
    const { session, items } = parcel;
    session.sent.add(items);
    try {
      const recorded = await settle(connection, session.id, items);
      const refused = items.length - recorded.length;
      splitter.taken();
      this.#o.onRefused(refused);
      if (refused > 0) meter.refused(refused);
      session.settling -= items.length;
      permits.give(items.length);
      this.#o.onSettled?.(items, recorded);
      await tellFailures(connection, items);
      return true;
    } catch (e) {
      meter.stepFailed();
      if (splitter.others(parcel, e)) return false;
      // guard: any other outcome leaves when its statement was answered -> test/worker/properties.test.ts: "every claimed task is settled, released or lost with its lease, and none is settled twice under one claim"
      splitter.putBack(parcel, () => /* guard:answered */ outbox.putBackOthers(parcel) /* end */);
      if (isSluiceError(e, "lease_lost")) this.#o.onLost(session);
      else this.#o.onTrouble(e);
      return false;
    } finally {
      session.sent.delete(items);
    }
  }
}
