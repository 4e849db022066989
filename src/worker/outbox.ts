import type { Success } from "../postgres/step.js";
import { tellLost, type Outcome } from "./failure.js";
import type { Begun } from "./metrics/meter.js";
import { mendedOther, mendedSuccess, piecesOf, type Piece, type Refusal } from "./refused.js";
import type { Session } from "./session.js";

/** A success on its way to the database. */
export interface Completion extends Success, Begun {}

/** Outcomes of one session on their way to the database. Each still holds its permit. */
export interface Parcel<T> {
  readonly session: Session;
  readonly items: readonly T[];
}

// One statement with many large results would take much time and memory, both here and in the database.
const RESULTS_LENGTH_MAX = 4 * 1024 * 1024;

function lengthOf(items: readonly Success[]): number {
  let length = 0;
  for (const { result } of items) length += result.length;
  return length;
}

/** How many leading items, at least one and at most max, have results that fit into one statement. */
function fitting(items: readonly Success[], max: number): number {
  let length = items[0]?.result.length ?? 0;
  for (let n = 1; n < Math.min(items.length, max); n++) {
    length += items[n]!.result.length;
    if (length > RESULTS_LENGTH_MAX) return n;
  }
  return max;
}

/**
 * Outcomes that wait to be recorded. While one statement is in flight the next batch collects, so batches form by
 * themselves under load, and an idle system waits for no timer.
 */
export class Outbox {
  readonly #successes = new OutcomeQueue<Completion>();
  readonly #others = new OutcomeQueue<Outcome>();
  /** Total length of the waiting results, as JSON text. */
  resultLength = 0;
  /** Sent without a reply: the database may have recorded them. */
  readonly #doubted = new Set<unknown>();
  #unconfirmed = 0;
  #over = false;

  get size(): number {
    return this.#successes.all + this.#others.all;
  }

  /** Completions for which it will remain unknown whether the database recorded them. */
  get unconfirmed(): number {
    return this.#unconfirmed + (this.#over ? this.#doubted.size : 0);
  }

  get successes(): number {
    return this.#successes.size;
  }

  get others(): number {
    return this.#others.size;
  }

  addSuccess(session: Session, success: Completion): void {
    this.#successes.add(session, success);
    this.resultLength += success.result.length;
  }

  addOther(session: Session, outcome: Outcome): void {
    this.#others.add(session, outcome);
  }

  takeSuccesses(max: number): Parcel<Completion> | null {
    const parcel = this.#successes.take((items) => fitting(items, max));
    if (parcel !== null) this.resultLength -= lengthOf(parcel.items);
    return parcel;
  }

  takeOthers(max: number): Parcel<Outcome> | null {
    return this.#others.take(() => max);
  }

  /** The statement failed: its outcomes return to the front. */
  putBackSuccesses(parcel: Parcel<Completion>): void {
    this.#successes.putBack(parcel);
    this.resultLength += lengthOf(parcel.items);
  }

  putBackOthers(parcel: Parcel<Outcome>): void {
    this.#others.putBack(parcel);
  }

  /**
   * The database refused a statement with these outcomes: they are sent in smaller ones. Returns when the last one is
   * due.
   */
  refuseSuccesses(parcel: Parcel<Completion>, refusal: Refusal, e: unknown, nowMs: number): number {
    const mend = (item: Completion): Completion | null => {
      const mended = mendedSuccess(item, e);
      if (mended !== null && this.#doubted.delete(item)) this.#doubted.add(mended);
      return mended;
    };
    const pieces = piecesOf(parcel, { refusal, nowMs, mend });
    for (const { items } of pieces) this.resultLength += lengthOf(items);
    return this.#successes.addPieces(pieces);
  }

  refuseOthers(parcel: Parcel<Outcome>, refusal: Refusal, e: unknown, nowMs: number): number {
    const mend = (item: Outcome): Outcome | null => mendedOther(item, e);
    return this.#others.addPieces(piecesOf(parcel, { refusal, nowMs, mend }));
  }

  /** Takes a part of a refused statement that is due. It must be sent by itself. */
  takeRefusedSuccesses(nowMs: number): Piece<Completion> | null {
    const piece = this.#successes.takePiece(nowMs);
    if (piece !== null) this.resultLength -= lengthOf(piece.items);
    return piece;
  }

  takeRefusedOthers(nowMs: number): Piece<Outcome> | null {
    return this.#others.takePiece(nowMs);
  }

  /** The statement with these outcomes got no reply: they are sent again, or lost. */
  doubt(items: readonly Completion[]): void {
    // guard: a completion whose reply was lost is in doubt -> test/metrics/counts.test.ts: "completed never exceeds what the database accepted, which never exceeds completed plus unconfirmed"
    /* guard:doubt */ for (const item of items) this.#doubted.add(item); /* end */
  }

  /** The commit of a transaction that completes a task got no reply. */
  commitDoubted(): void {
    this.#unconfirmed++;
  }

  /** These outcomes are settled, or given up. A refused outcome may have been recorded when it was sent before. */
  answered(items: readonly unknown[], refused: number): void {
    if (this.#doubted.size === 0) return;
    let doubted = 0;
    for (const item of items) if (this.#doubted.delete(item)) doubted++;
    this.#unconfirmed += Math.min(doubted, refused);
  }

  /** Nothing is sent any more: outcomes in doubt stay in doubt, and another worker runs the tasks that wait here. */
  giveUp(): void {
    this.#over = true;
    for (const session of this.#others.sessions) tellLost(this.#others.of(session));
  }

  /** The claim tokens of a session's waiting outcomes. */
  tokens(session: Session): string[] {
    return [...this.#successes.of(session), ...this.#others.of(session)].map((o) => o.claim.token);
  }

  /** Forgets the outcomes that a session without a lease can no longer record. Returns their number. */
  forget(session: Session): number {
    const successes = this.#successes.of(session);
    this.resultLength -= lengthOf(successes);
    this.answered(successes, successes.length);
    tellLost(this.#others.of(session));
    return this.#successes.forget(session) + this.#others.forget(session);
  }
}

/** Outcomes of one kind that wait to be sent, by session. */
class OutcomeQueue<T> {
  readonly #bySession = new Map<Session, T[]>();
  /** Parts of refused statements. */
  #pieces: Piece<T>[] = [];
  size = 0;

  get sessions(): ReadonlySet<Session> {
    return new Set([...this.#bySession.keys(), ...this.#pieces.map(({ session }) => session)]);
  }

  /** Includes the items in pieces. */
  get all(): number {
    return this.#pieces.reduce((sum, { items }) => sum + items.length, this.size);
  }

  add(session: Session, item: T): void {
    const items = this.#bySession.get(session);
    if (items === undefined) this.#bySession.set(session, [item]);
    else items.push(item);
    session.settling++;
    this.size++;
  }

  /** Takes outcomes of one session: as many leading items as mostOf returns. */
  take(mostOf: (items: readonly T[]) => number): Parcel<T> | null {
    for (const [session, items] of this.#bySession) {
      const most = mostOf(items);
      const taken = items.length <= most ? items : items.splice(0, most);
      if (taken === items) this.#bySession.delete(session);
      this.size -= taken.length;
      return { session, items: taken };
    }
    return null;
  }

  of(session: Session): readonly T[] {
    const rest = this.#bySession.get(session) ?? [];
    if (this.#pieces.length === 0) return rest;
    const pieces = this.#pieces.filter((piece) => piece.session === session);
    return [...pieces.flatMap(({ items }) => items), ...rest];
  }

  addPieces(pieces: readonly Piece<T>[]): number {
    this.#pieces.push(...pieces);
    return Math.max(...pieces.map(({ dueMs }) => dueMs));
  }

  takePiece(nowMs: number): Piece<T> | null {
    const at = this.#pieces.findIndex(({ dueMs }) => dueMs <= nowMs);
    return at === -1 ? null : this.#pieces.splice(at, 1)[0]!;
  }

  putBack({ session, items }: Parcel<T>): void {
    this.#bySession.set(session, [...items, ...(this.#bySession.get(session) ?? [])]);
    this.size += items.length;
  }

  forget(session: Session): number {
    const n = this.of(session).length;
    this.size -= this.#bySession.get(session)?.length ?? 0;
    this.#bySession.delete(session);
    this.#pieces = this.#pieces.filter((piece) => piece.session !== session);
    session.settling -= n;
    return n;
  }
}
