import { ClaimPolicy, type ClaimPlan, type Pressed } from "../../core/claim-policy.js";
import type { Agenda } from "./agenda.js";
import type { Ledger } from "./ledger.js";
import type { Market, Seat } from "./market.js";
import type { Random } from "./random.js";
import type { Thread } from "./thread.js";

const SETTLE_MAX = 500;
const TOGETHER = 20;
const NOT_PRESSED: Pressed = { memory: false, taskDuration: false, eventLoopDelay: false };
// The batch size is given, so the load does not change it.
const NO_LOAD = { inHand: 0, completed: 0, nowMs: 0 };

/** The numbers that describe a process. */
export interface ProcessNumbers {
  readonly permits: number;
  /** Statements that may be in flight at the same time. */
  readonly lines: number;
  readonly batch: number;
  readonly claimMs: number;
  readonly engineMs: number;
  readonly pollIntervalMs: number;
  /** The share of a task's duration in which it waits for something other than the processor. */
  readonly ioShare: number;
  readonly durationMs: (random: Random) => number;
}

interface Surroundings {
  readonly agenda: Agenda;
  readonly market: Market;
  readonly thread: Thread;
  readonly ledger: Ledger;
  readonly random: Random;
}

/** One worker in one Node process: a permit, a step, a run, and the step that settles it. */
export class Process {
  readonly #n: ProcessNumbers;
  readonly #s: Surroundings;
  readonly #policy: ClaimPolicy;
  readonly #seat: Seat;
  #free: number;
  #idleLines: number;
  /** Tasks that have ended and are not yet on their way to the database. */
  #ended = 0;
  #scheduled = false;

  constructor(numbers: ProcessNumbers, surroundings: Surroundings) {
    this.#n = numbers;
    this.#s = surroundings;
    this.#policy = new ClaimPolicy({ permitsMax: numbers.permits, batchSize: numbers.batch, notified: true });
    this.#free = numbers.permits;
    this.#idleLines = numbers.lines;
    this.#seat = { ring: (tasks) => this.#ring(tasks) };
    this.#poll();
  }

  #poll(): void {
    const { agenda, random, thread } = this.#s;
    agenda.after(this.#n.pollIntervalMs * (0.9 + random() * 0.2), () => this.#poll());
    thread.push(0, () => {
      this.#policy.wake();
      this.#pump();
    });
  }

  /** A notification takes half a round trip. */
  #ring(tasks: number): void {
    this.#s.agenda.after(this.#n.claimMs / 2, () =>
      this.#s.thread.push(0, () => {
        this.#policy.announce(tasks);
        this.#pump();
      }),
    );
  }

  /** Pumps once for all tasks that end at the same moment. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#s.agenda.after(0, () =>
      this.#s.thread.push(0, () => {
        this.#scheduled = false;
        this.#pump();
      }),
    );
  }

  #pump(): void {
    while (this.#idleLines > 0 && this.#stepOnce());
  }

  #stepOnce(): boolean {
    const settling = this.#share();
    const claim = this.#policy.next({
      permitsFree: this.#free,
      settling,
      // A task without limits releases no slots when it ends.
      slotsReleased: 0,
      payloadRoom: Number.MAX_SAFE_INTEGER,
      sizeMax: Number.MAX_SAFE_INTEGER,
      pressed: NOT_PRESSED,
    });
    if (settling === 0 && claim.want === 0) return false;
    this.#send(settling, claim);
    return true;
  }

  /** Ended tasks are spread over the free lines; tasks that end in the turn in which they began stay together. */
  #share(): number {
    const share = Math.ceil(this.#ended / this.#idleLines);
    const most = this.#n.ioShare === 0 ? Math.max(share, TOGETHER) : share;
    return Math.min(most, this.#ended, SETTLE_MAX);
  }

  /** The database does its work halfway through the round trip. */
  #send(settling: number, claim: ClaimPlan): void {
    const { agenda, market, ledger, thread } = this.#s;
    const { extra } = claim;
    this.#policy.sent(claim);
    this.#idleLines--;
    this.#ended -= settling;
    this.#free -= extra;
    ledger.permits(extra);
    agenda.after(this.#n.claimMs / 2, () => {
      const claimed = market.claim(this.#seat, claim.want, claim.reports);
      ledger.exchanged(settling, claimed.length);
      agenda.after(this.#n.claimMs / 2, () => thread.push(0, () => this.#received(settling + extra, claim, claimed)));
    });
  }

  #received(held: number, claim: ClaimPlan, claimed: readonly number[]): void {
    this.#free += held - claimed.length;
    this.#s.ledger.permits(claimed.length - held);
    this.#policy.ended(claim);
    if (claim.want > 0) this.#policy.learn(claim, claimed.length, NO_LOAD);
    for (const arrivedMs of claimed) this.#start(arrivedMs);
    this.#idleLines++;
    this.#schedule();
  }

  /**
   * Half of a task's JavaScript runs before its wait and half after; all of it in one piece if the task does not wait.
   */
  #start(arrivedMs: number): void {
    const { agenda, thread, ledger, random } = this.#s;
    const { ioShare, engineMs } = this.#n;
    const durationMs = this.#n.durationMs(random);
    const pieceMs = ((1 - ioShare) * durationMs + engineMs) / 2;
    const began = (atMs: number): void => ledger.began(atMs - arrivedMs);
    const end = (): void => this.#end();
    if (ioShare === 0) return thread.push(2 * pieceMs, end, began);
    thread.push(pieceMs, () => agenda.after(ioShare * durationMs, () => thread.push(pieceMs, end)), began);
  }

  #end(): void {
    this.#s.ledger.ended();
    this.#ended++;
    this.#schedule();
  }
}
