import { isSluiceError } from "../core/error.js";
import { describeError } from "../core/json.js";
import type { Clock, Logger, Queryable } from "../core/ports.js";
import { isReplyLost, tellTrouble } from "../postgres/errors.js";
import { inTransaction } from "../postgres/transaction.js";
import { misplaced, placeMany, putOff, takeUnplaced, type Unplaced } from "../postgres/workflow/place.js";
import { placeSmall, SMALL_MAX } from "./place-small.js";
import { faultOf, notWanted, placeNode, type PlaceCrew } from "./place.js";
import { trying } from "./try.js";

interface PlacerOptions extends PlaceCrew {
  readonly log: Logger;
  readonly clock: Clock;
  /** Called when tasks were placed. */
  readonly onMoved: () => void;
}

// Every step reports a node that another process has locked, until that node is placed.
const REST_MS = 50;
const REST_MS_MAX = 5_000;
// As long as the server allows a transaction to be idle, see workflow_limit_idle.
const HELD_MS_MAX = 30_000;
// Nodes that no process here can place remain for as long as their type is not deployed.
const GLANCE_MS = 1_000;

/**
 * Creates the tasks of runs that only code can place, or that are many: each node in a transaction of its own, which
 * locks the node's row. If this process dies meanwhile, the lock is released and another process places the node.
 */
export class Placer {
  readonly #o: PlacerOptions;
  #busy = false;
  #again = false;
  #stopped = false;
  #glancedMs = Number.NEGATIVE_INFINITY;

  constructor(options: PlacerOptions) {
    this.#o = { ...options, onPutOff: tellPutOff(options.log) };
  }

  /** There may be a node to place, possibly by this process; checks at most once per GLANCE_MS. */
  glance(): void {
    const now = this.#o.clock.now();
    if (now - this.#glancedMs < GLANCE_MS) return;
    this.#glancedMs = now;
    this.look();
  }

  /** There is a node to place, unless another process has locked it. */
  look(): void {
    this.#again = true;
    if (!this.#busy && !this.#stopped) void this.#work();
  }

  stop(): void {
    this.#stopped = true;
  }

  async #work(): Promise<void> {
    this.#busy = true;
    let restMs = REST_MS;
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        for (; !this.#stopped && (await placeNext(this.#o)); restMs = REST_MS) this.#o.onMoved();
      } catch (e) {
        if (this.#stopped) break;
        this.#o.onPutOff?.(e);
        // Other nodes may still be placed, unless the connection was lost; in that case the keeper polls again shortly.
        this.#again ||= !isReplyLost(e);
        restMs = Math.min(REST_MS_MAX, 2 * restMs);
      }
      if (!this.#stopped) await new Promise((resolve) => setTimeout(resolve, restMs).unref());
    }
    this.#busy = false;
  }
}

const tellPutOff =
  (log: Logger) =>
  (e: unknown): void =>
    tellTrouble(log, "the tasks of a run could not be created", e);

/** Places the tasks of one node, or of many small ones. Returns false if there is no unlocked node. */
export async function placeNext(o: PlaceCrew): Promise<boolean> {
  return (await placeKnown(o)) || placeLong(o);
}

/** Places nodes of the types that this process has code for: many small ones at once, the others one by one. */
async function placeKnown(o: PlaceCrew): Promise<boolean> {
  const began = performance.now();
  const { count, others } = await placeSmall(o).catch(async (e: unknown) => {
    if (isReplyLost(e) && performance.now() - began < HELD_MS_MAX) throw e;
    // guard: one by one when many fail -> test/runs/placer.test.ts: "a node that cannot be placed does not stop other nodes, and fails after ten tries"
    let one = 0;
    /* guard:singly */ while (one < SMALL_MAX && (await placeOne(o))) one++; /* end */
    return { count: one, others: false };
  });
  return (others && (await placeOne(o))) || count > 0;
}

/** Places one node of a type that this process has code for, of any size. */
async function placeOne(o: PlaceCrew): Promise<boolean> {
  const { db, pool, terms } = o;
  let taken: Unplaced | "again" | null = null;
  let takenMs = 0;
  const work = async (tx: Queryable): Promise<void> => {
    const node = await takeUnplaced(db, [...terms.keys()], tx);
    taken = node;
    takenMs = performance.now();
    if (node !== null && node !== "again")
      await trying(o, [node], tx, () => placeNode(o, node, terms.get(node.stream)!, tx));
  };
  try {
    await inTransaction(db, work, pool);
  } catch (e) {
    if (taken === null || taken === "again") throw e;
    await failed(o, taken, e, performance.now() - takenMs);
  }
  return taken !== null;
}

/** Handles a failed placing, which was rolled back. Throws errors that are not the node's fault. */
async function failed({ db, declarations }: PlaceCrew, node: Unplaced, e: unknown, heldMs: number): Promise<void> {
  if (notWanted(e)) return;
  // guard: what cannot be placed fails its node -> test/runs/placer.test.ts: "an item whose key function throws fails its fan-out once, and the worker continues without a poll"
  const fault = /* guard:fault */ faultOf(e); /* end */
  if (fault !== null) return void (await misplaced(db, node, fault));
  // Rethrow a lost reply, unless the transaction took so long that the server may have ended it.
  // guard: a lost connection is no try -> test/runs/placer.test.ts: "a connection lost while a node is placed does not count as a try"
  /* guard:lost-reply */ if (isReplyLost(e) && heldMs < HELD_MS_MAX) throw e; /* end */
  // guard: what fails lets others go first -> test/runs/placer.test.ts: "a node that cannot be placed does not stop other nodes, and fails after ten tries"
  const { name, code = name, message } = describeError(e);
  /* guard:put-off */ await putOff(db, node, { code, message }); /* end */
  // A limit declared by this process has been removed: the next try declares it again.
  if (isSluiceError(e, "unknown_limit")) declarations.forget();
  else throw e;
}

/** Places a node of any type that needs no code but has many items. */
function placeLong({ db, pool }: PlaceCrew): Promise<boolean> {
  return inTransaction(db, (tx) => placeMany({ run: (s, values) => db.run(s, values, tx) }), pool);
}
