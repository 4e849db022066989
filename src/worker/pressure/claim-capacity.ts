import type { ClaimPolicy } from "../../core/claim-policy.js";
import type { Executions } from "../executions.js";
import type { Outbox } from "../outbox.js";
import type { Payloads } from "../payloads.js";
import type { Permits } from "../permits.js";

interface ClaimCapacityOptions {
  readonly permits: Permits;
  readonly payloads: Payloads;
  readonly executions: Pick<Executions, "inputLength">;
  readonly outbox: Pick<Outbox, "resultLength">;
  readonly policy: Pick<ClaimPolicy, "stopsWith">;
}

/** How many more tasks fit, by permits and by bytes, and what stops claims. */
export class ClaimCapacity {
  readonly #o: ClaimCapacityOptions;
  #full = false;
  /** Tasks requested by claims in flight. */
  asked = 0;

  constructor(options: ClaimCapacityOptions) {
    this.#o = options;
  }

  /** How many more tasks fit into the next claim, by bytes. Once full, returns 0 until a good part is free again. */
  nextPayloadRoom(): number {
    this.#full = this.#isFull();
    return this.#full ? 0 : this.#payloadRoom();
  }

  /** How many more tasks fit, by permits and by bytes. */
  get room(): number {
    const { permits, policy } = this.#o;
    if (policy.stopsWith(permits.free) || this.#isFull()) return 0;
    return Math.min(permits.free, this.#payloadRoom());
  }

  /** What currently stops claims. */
  get stops(): readonly ("permits" | "payload")[] {
    const few = this.#o.policy.stopsWith(this.#o.permits.free);
    if (this.#isFull()) return few ? ["permits", "payload"] : ["payload"];
    return few ? ["permits"] : [];
  }

  #isFull(): boolean {
    return this.#o.payloads.full(this.#full, this.#here(), this.asked);
  }

  #payloadRoom(): number {
    return this.#o.payloads.room(this.#here(), this.asked);
  }

  #here(): number {
    return this.#o.executions.inputLength + this.#o.outbox.resultLength;
  }
}
