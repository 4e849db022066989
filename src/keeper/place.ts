import { faultOf, placeNode, type PlaceDesk } from "../client/place.js";
import { isSluiceError } from "../core/error.js";
import type { Clock, Logger, Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import { tellTrouble } from "../postgres/fault.js";
import { inTransaction, type Lender } from "../postgres/transaction.js";
import { misplaced, placeMany, takeUnplaced, type Unplaced } from "../postgres/workflow/place.js";

/** What placing needs: the types that this process knows, and connections that no claim uses. */
export interface PlaceCrew extends PlaceDesk {
  readonly pool: Lender;
  /** By stream. */
  readonly terms: ReadonlyMap<number, TaskTerms<never>>;
}

interface PlacerOptions extends PlaceCrew {
  readonly log: Logger;
  readonly clock: Clock;
  /** Tasks were placed. */
  readonly onMoved: () => void;
}

/** Nobody wants them any more: what was placed is rolled back. */
class NotWanted extends Error {}

// What another has in hand is told of by every step until it is done.
const REST_MS = 50;
// What nobody here can place is there for as long as its type is not deployed.
const GLANCE_MS = 1_000;

/**
 * Creates tasks of runs that only code can place, or that are many: each node in a transaction of its own,
 * whose row it holds. If we die meanwhile the row is free again, and another places it.
 */
export class Placer {
  readonly #o: PlacerOptions;
  #busy = false;
  #again = false;
  #stopped = false;
  #glancedMs = Number.NEGATIVE_INFINITY;

  constructor(options: PlacerOptions) {
    this.#o = options;
  }

  /** Something is to be placed somewhere, perhaps here. */
  glance(): void {
    const now = this.#o.clock.now();
    if (now - this.#glancedMs < GLANCE_MS) return;
    this.#glancedMs = now;
    this.look();
  }

  /** There is something to place, unless another has it in hand. */
  look(): void {
    this.#again = true;
    if (!this.#busy && !this.#stopped) void this.#work();
  }

  stop(): void {
    this.#stopped = true;
  }

  async #work(): Promise<void> {
    this.#busy = true;
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        while (!this.#stopped && (await placeNext(this.#o))) this.#o.onMoved();
      } catch (e) {
        // The keeper looks again before long.
        if (!this.#stopped) tellTrouble(this.#o.log, "tasks of a run could not be placed", e);
      }
      if (!this.#stopped) await new Promise((resolve) => setTimeout(resolve, REST_MS).unref());
    }
    this.#busy = false;
  }
}

/** Places the tasks of one node. False if there is none that nobody has in hand. */
export async function placeNext(o: PlaceCrew): Promise<boolean> {
  return (await placeKnown(o)) || placeLong(o);
}

/** A node of one of our types, which needs code. */
async function placeKnown(o: PlaceCrew): Promise<boolean> {
  const { db, pool, terms, declarations } = o;
  let node: Unplaced | null = null;
  const work = async (tx: Queryable): Promise<void> => {
    node = await takeUnplaced(db, [...terms.keys()], tx);
    if (node === null) return;
    if (!(await placeNode(o, node, terms.get(node.stream)!, tx))) throw new NotWanted();
  };
  try {
    await inTransaction(db, work, pool);
  } catch (e) {
    if (e instanceof NotWanted) return true;
    if (node === null) throw e;
    // guard: what cannot be placed fails its node -> test/worker/workflow-place.test.ts: "a key function that throws fails the node with a reason, once, and the worker goes on without a poll"
    const fault = faultOf(e);
    if (fault !== null) await misplaced(db, node, fault);
    // Somebody has removed a limit that we had declared: the next try declares it again.
    else if (isSluiceError(e, "unknown_limit")) declarations.forget();
    else throw e;
    return true;
  }
  return node !== null;
}

/** A node of any type that needs no code but has many items. */
function placeLong({ db, pool }: PlaceCrew): Promise<boolean> {
  return inTransaction(db, (tx) => placeMany({ run: (s, values) => db.run(s, values, tx) }), pool);
}
