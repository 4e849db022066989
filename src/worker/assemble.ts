import type { Declarations } from "../client/declarations.js";
import type { Desk } from "../client/enqueue.js";
import type { resolveWorkerOptions } from "../core/config.js";
import { SluiceError } from "../core/error.js";
import type { Clock, Logger } from "../core/ports.js";
import { Keeper, type History } from "../keeper/keeper.js";
import { Placer } from "../keeper/place.js";
import type { Database } from "../postgres/database.js";
import { Line } from "../postgres/line.js";
import type { Listener } from "../postgres/listen.js";
import { endPool } from "../postgres/part.js";
import { Claimer } from "./claim.js";
import { Crew } from "./crew.js";
import { contextDesk } from "./desk.js";
import { Heart } from "./heartbeat.js";
import type { Outbox } from "./outbox.js";
import { Payloads } from "./payloads.js";
import type { Permits } from "./permits.js";
import type { AnyHandler } from "./run.js";
import type { Session } from "./session.js";
import { Suspects } from "./suspect.js";

/** What a worker needs from the Sluice it belongs to. */
export interface WorkerDesk extends Desk {
  readonly db: Database;
  readonly declarations: Declarations;
  readonly listener: Listener | null;
  readonly logger: Logger;
  /** At most a line a second about the same trouble. */
  readonly log: Logger;
  readonly history: History;
  readonly resultBytesMax: number;
  /** It has stopped, or could not start. */
  readonly onStopped: () => void;
}

interface AssembleOptions {
  readonly desk: WorkerDesk;
  readonly numbers: ReturnType<typeof resolveWorkerOptions>["values"];
  readonly name: string;
  readonly permits: Permits;
  readonly outbox: Outbox;
  readonly clock: Clock;
  /** Whether the worker is neither starting nor stopping. */
  readonly running: () => boolean;
}

/** What a worker is made of while it runs. */
export interface Parts {
  readonly crew: Crew;
  readonly heart: Heart;
  readonly claimer: Claimer;
  readonly keeper: Keeper;
  close(): Promise<void>;
}

// While one statement of a loop is being answered, Node prepares the other.
export const LINES_PER_LOOP = 2;
export const OTHER_LINES = 2;
const SWEEP_MS = 50;
// What the keeper asks for is done in bounded steps. If it waited longer, a half-open connection
// would hold up the recovery of what dead workers held.
const KEEP_REPLY_MS_MAX = 5_000;

/** Makes the parts of a worker and joins them; nothing runs yet. */
export function assemble(handlers: ReadonlyMap<number, AnyHandler>, o: AssembleOptions): Parts {
  const { desk, numbers, name, permits, outbox, clock } = o;
  const { db, listener, history, resultBytesMax, log } = desk;
  const { claimLoops, claimBatchSize, pollIntervalMs, dbConnections, leaseMs } = numbers;
  const payloads = new Payloads(numbers.payloadBytesInFlightMax);
  const replyMsMax = Math.max(1_000, Math.min(10_000, leaseMs * 0.8));
  const lines = Array.from({ length: claimLoops * LINES_PER_LOOP }, () => new Line(db, replyMsMax));
  const [beatLine, keepLine] = [
    new Line(db, Math.max(500, leaseMs * 0.4)),
    new Line(db, KEEP_REPLY_MS_MAX),
  ];
  const pool = db.pool(dbConnections - lines.length - OTHER_LINES);
  const keep = history.succeededMs > 0;
  const streams = [...handlers.keys()];

  const crew: Crew = new Crew({
    handlers,
    outbox,
    desk: contextDesk({
      desk,
      pool,
      listener,
      keep,
      resultBytesMax,
      logger: desk.logger,
      log,
      clock,
      onRecorded: (run) => crew.recorded(run),
    }),
    clock,
    log,
    resultBytesMax,
    onOutcome: () => claimer.schedule(),
    onRecorded: () => {
      permits.give(1);
      claimer.wake();
    },
  });
  const lose = (session: Session): void => {
    const dropped = crew.drop(
      session,
      new SluiceError("lease_lost", "the worker's lease was lost; this task runs elsewhere"),
    );
    // guard: what waits to be recorded is lost with its lease -> test/worker/properties.test.ts: "a run aborted for a lost lease records nothing, and is aborted before its lease runs out"
    permits.give(dropped + outbox.forget(session));
  };
  const suspects = new Suspects({
    leaseMs,
    permits,
    clock,
    log,
    running: o.running,
    parts: () => parts,
  });
  const heart: Heart = new Heart({
    line: beatLine,
    registration: { name, streams, leaseMs, capacity: permits.max },
    free: () => (suspects.busy ? 0 : claimer.room),
    clock,
    log,
    // guard: an outcome that waits is not unknown -> test/worker/properties.test.ts: "a lost claim reply is handed back and is no crash"
    known: (session) => [...session.tokens(), ...outbox.tokens(session)],
    onBegan: () => claimer.sessionBegan(),
    onLost: lose,
    onStop: (session, id, reason) => crew.cancel(session, id, reason),
    onSuspect: (session, id) => void suspects.run(session, id),
  });
  const claimer: Claimer = new Claimer({
    lines,
    streams,
    permits,
    payloads,
    outbox,
    crew,
    batchMax: claimBatchSize,
    pollIntervalMs,
    keep,
    bell: listener !== null,
    clock,
    log,
    current: () => heart.current,
    onDoubt: (session) => heart.doubt(session),
    onLost: (session) => heart.lose(session),
    onUnplaced: () => placer.look(),
  });
  const placer = new Placer({
    db,
    declarations: desk.declarations,
    pool,
    terms: new Map([...handlers].map(([stream, { contract }]) => [stream, contract])),
    log,
    clock,
    onMoved: () => claimer.wake(),
  });
  const keeper = new Keeper({
    line: keepLine,
    log,
    clock,
    dueIntervalMs: pollIntervalMs,
    reapIntervalMs: Math.max(50, Math.min(500, leaseMs / 10)),
    history,
    onMoved: () => claimer.wake(),
    onUnplaced: () => placer.glance(),
  });
  const sweep = setInterval(() => crew.sweep(), SWEEP_MS);
  const hush = listener?.on((payload) => {
    const [word, worker, tasks] = payload.split(":");
    if (word === "again") claimer.wake();
    else if (word === "wake" && worker === heart.current?.id) claimer.ring(Number(tasks));
  });
  const close = async (): Promise<void> => {
    clearInterval(sweep);
    hush?.();
    placer.stop();
    await Promise.all([...lines, beatLine, keepLine].map((line) => line.close()));
    await endPool(pool);
  };
  const parts: Parts = { crew, heart, claimer, keeper, close };
  return parts;
}
