import { claimSize, fewFree, type Pressed } from "../../core/claim-size.js";
import type { Crew } from "../crew.js";
import type { Outbox } from "../outbox.js";
import type { Payloads } from "../payloads.js";
import type { Permits } from "../permits.js";

interface ValveOptions {
  readonly permits: Permits;
  readonly payloads: Payloads;
  readonly crew: Pick<Crew, "inputLength">;
  readonly outbox: Pick<Outbox, "resultLength">;
  readonly batchMax: () => number;
  /** Whether there is a backlog, as far as claims tell: with one, a worker fills up to the last permit. */
  readonly backlog: () => boolean;
  readonly pressed?: () => Pressed;
}

const NOT_PRESSED: Pressed = { memory: false, taskDuration: false, eventLoopDelay: false };

/** Where tasks are let in: how many, by permits, by bytes and by pressure, and what stops them. */
export class Valve {
  readonly #o: ValveOptions;
  readonly #pressed: () => Pressed;
  #few = false;
  #full = false;
  /** Whether a backlog came when more than few permits were free, and lasts, and the last permit is not yet taken. */
  #filling = false;
  /** Tasks of claims that are under way. */
  asked = 0;

  constructor(options: ValveOptions) {
    this.#o = options;
    this.#pressed = options.pressed ?? (() => NOT_PRESSED);
  }

  /** How many to ask for at most, with a statement that settles so many. */
  size(settling: number): number {
    const { permits, batchMax, backlog } = this.#o;
    const wasFew = this.#few;
    this.#few = fewFree(wasFew, permits.free + settling, permits.max);
    this.#filling = backlog() && (this.#few ? this.#filling && permits.free > 0 : true);
    this.#full = this.#isFull();
    return claimSize({
      permitsFree: permits.free,
      permitsMax: permits.max,
      settling,
      batchMax: batchMax(),
      payloadRoom: this.#full ? 0 : this.#payloadRoom(),
      wasFew,
      filling: this.#filling,
      pressed: this.#pressed(),
    });
  }

  /** How many more tasks fit, by permits and by bytes. */
  get room(): number {
    const { permits } = this.#o;
    if (this.#isFew(permits.free) || this.#isFull()) return 0;
    return Math.min(permits.free, this.#payloadRoom());
  }

  /** Whether nothing more is let in after so many. */
  shutAfter(tasks: number): boolean {
    return this.#isFew(this.#o.permits.free - tasks) || this.#isFull() || this.#payloadRoom() <= tasks;
  }

  /** What stops claims just now. */
  get stops(): readonly ("permits" | "payload")[] {
    const few = this.#isFew(this.#o.permits.free);
    if (this.#isFull()) return few ? ["permits", "payload"] : ["payload"];
    return few ? ["permits"] : [];
  }

  #isFew(free: number): boolean {
    return free <= 0 || (!this.#filling && fewFree(this.#few, free, this.#o.permits.max));
  }

  #isFull(): boolean {
    return this.#o.payloads.full(this.#full, this.#here(), this.asked);
  }

  #payloadRoom(): number {
    return this.#o.payloads.room(this.#here(), this.asked);
  }

  #here(): number {
    return this.#o.crew.inputLength + this.#o.outbox.resultLength;
  }
}
