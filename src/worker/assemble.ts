import type pg from "pg";
import type { ConnectionShares } from "../config/connections.js";
import type { Values } from "../config/table.js";
import { SluiceError } from "../core/error.js";
import type { Clock } from "../core/ports.js";
import { Keeper } from "../keeper/keeper.js";
import { Placer } from "../keeper/place.js";
import { backend, endBackend } from "../postgres/backend.js";
import { Line } from "../postgres/line.js";
import { endPool } from "../postgres/part.js";
import type { Settlement } from "../postgres/settle.js";
import { onWait } from "../postgres/waits.js";
import { Claimer } from "./claim.js";
import { Crew } from "./crew.js";
import { contextDesk } from "./desk.js";
import { Heart } from "./heartbeat.js";
import type { Probe } from "./held.js";
import { noMeter, type Meter } from "./meter.js";
import { OnCall } from "./on-call.js";
import type { Outbox } from "./outbox.js";
import { Payloads } from "./payloads.js";
import type { Permits } from "./permits.js";
import { heardBy } from "./pressure/hear.js";
import { payloadBytesFor } from "./pressure/memory.js";
import { resolvePressure, type PressureThresholds } from "./pressure/options.js";
import { Pressure } from "./pressure/pressure.js";
import { checkRoom, checkTimeout, mayOpen } from "./room.js";
import type { AnyHandler } from "./execution.js";
import type { Session } from "./session.js";
import { Suspects } from "./suspect.js";
import type { WorkerDesk } from "./worker-desk.js";

interface AssembleOptions {
  readonly desk: WorkerDesk;
  readonly numbers: Values<"worker">;
  readonly shares: ConnectionShares;
  readonly name: string;
  readonly permits: Permits;
  readonly outbox: Outbox;
  readonly clock: Clock;
  /** Who wants to know what happens. */
  readonly meter?: Meter;
  readonly thresholds?: PressureThresholds;
  /** Whether the worker is neither starting nor stopping. */
  readonly running: () => boolean;
}

/** What a worker is made of while it runs. */
export interface Parts {
  readonly crew: Crew;
  readonly heart: Heart;
  readonly claimer: Claimer;
  readonly keeper: Keeper;
  readonly pressure: Pressure;
  readonly suspects: Suspects;
  /** For transactions of handlers. */
  readonly pool: pg.Pool;
  /** Throws if the server cannot have the worker's connections, and warns of what may hinder it. */
  checkRoom(): Promise<void>;
  close(): Promise<void>;
}

const SWEEP_MS = 50;
// With nothing in hand.
const IDLE_SWEEP_MS = 5_000;
// A task of these comes back after a while.
const PUT_OFF: ReadonlySet<Settlement["kind"]> = new Set(["retry", "snooze", "invalid"]);
// What the keeper asks for is done in bounded steps. If it waited longer, a half-open connection
// would hold up the recovery of what dead workers held.
const KEEP_REPLY_MS_MAX = 5_000;

/** Makes the parts of a worker and joins them; nothing runs yet. */
export function assemble(handlers: ReadonlyMap<number, AnyHandler>, o: AssembleOptions): Parts {
  const { desk, numbers, shares, name, permits, outbox, clock, meter = noMeter } = o;
  const { db, listener, history, resultBytesMax, log } = desk;
  const { claimBatchSize, pollIntervalMs, leaseMs } = numbers;
  const { thresholds = resolvePressure() } = o;
  const bytesMax = numbers.payloadBytesInFlightMax;
  // Who does not want memory looked at decides alone.
  const bounded = thresholds.memoryPercentMax !== null;
  const payloads = new Payloads(bounded ? payloadBytesFor(bytesMax) : bytesMax);
  const replyMsMax = Math.max(1_000, Math.min(10_000, leaseMs * 0.8));
  const lines = Array.from({ length: shares.lines }, () => new Line(db, replyMsMax));
  const [beatLine, keepLine] = [new Line(db, Math.max(500, leaseMs * 0.4)), new Line(db, KEEP_REPLY_MS_MAX)];
  const pool = db.pool(shares.handlers);
  const probe: Probe = {
    look: (pid) => backend(keepLine, pid),
    end: (transaction) => endBackend(keepLine, transaction),
  };
  if (meter !== noMeter) onWait(pool, (ms) => meter.waited("handlers", ms));
  const keep = history.succeededMs > 0;
  const streams = [...handlers.keys()];
  const onCall = new OnCall({ line: beatLine, listener, current: () => heart.current, log });
  const idle = (): boolean => permits.inUse === 0 && crew.size === 0 && !suspects.busy;

  const pressure = new Pressure({
    thresholds,
    clock,
    log,
    stops: () => claimer.stops,
    idle,
    onRelief: () => claimer.wake(),
  });
  const crew: Crew = new Crew({
    handlers,
    outbox,
    desk: contextDesk({
      desk,
      lending: { pool, replyMsMax, probe },
      listener,
      keep,
      resultBytesMax,
      logger: desk.logger,
      log,
      clock,
      onRecorded: (execution) => crew.recorded(execution),
      onUnconfirmed: () => outbox.commitDoubted(),
    }),
    clock,
    log,
    resultBytesMax,
    meter: heardBy(pressure, meter),
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
    // guard: what waits to be recorded is lost with its lease -> test/worker/properties.test.ts: "an execution aborted for a lost lease records nothing, and is aborted before its lease runs out"
    permits.give(dropped /* guard:waiting */ + outbox.forget(session) /* end */);
  };
  const suspects = new Suspects({
    leaseMs,
    permits,
    clock,
    log,
    meter,
    running: o.running,
    parts: () => parts,
  });
  const heart: Heart = new Heart({
    line: beatLine,
    registration: {
      name,
      streams,
      leaseMs,
      capacity: permits.max,
      connections: mayOpen(desk, shares),
      listens: listener !== null,
    },
    free: () => (suspects.busy ? 0 : claimer.room),
    idle,
    pressure: () => pressure.state,
    clock,
    log,
    // guard: an outcome that waits is not unknown -> test/worker/properties.test.ts: "a lost claim reply is handed back and is no crash"
    known: (session) => /* guard:known */ [...session.tokens(), ...outbox.tokens(session)] /* end */,
    onBegan: () => claimer.sessionBegan(),
    hasReserve: () => onCall.hasReserve,
    inReserve: () => onCall.inReserve,
    onDuty: (duty) => {
      onCall.told(duty);
      claimer.poll.changed();
    },
    onLost: lose,
    onStop: (session, id, reason) => crew.cancel(session, id, reason),
    onRoom: () => claimer.wake(),
    onSuspect: (session, id) => {
      void suspects.run(session, id);
      quicken();
    },
  });
  const claimer: Claimer = new Claimer({
    lines,
    streams,
    permits,
    payloads,
    outbox,
    crew,
    claimBatchSize,
    pressed: () => pressure.pressed,
    pollIntervalMs,
    keep,
    bell: listener !== null,
    listening: () => onCall.listening,
    pollMsMax: () => onCall.pollMsMax,
    onDoze: () => onCall.dozes(),
    clock,
    log,
    meter,
    current: () => heart.current,
    holds: (session) => heart.holds(session),
    onDoubt: (session) => heart.doubt(session),
    onLost: (session) => heart.lose(session),
    onBusy: () => {
      keeper.active();
      quicken();
    },
    onSettled: (items) => {
      for (const { kind, delayMs } of items) if (PUT_OFF.has(kind)) keeper.expect(delayMs);
    },
    onUnplaced: () => placer.look(),
  });
  const placer = new Placer({
    db,
    declarations: desk.declarations,
    pool,
    terms: new Map([...handlers].map(([stream, { contract }]) => [stream, contract])),
    worker: () => heart.current?.id ?? null,
    log,
    clock,
    onMoved: () => claimer.wake(),
  });
  // A keeper needs notifications only to lead.
  let leading: (() => void) | null = null;
  const keeper: Keeper = new Keeper({
    line: keepLine,
    log,
    clock,
    pollIntervalMs,
    listening: () => (leading === null ? listener?.connected : listener?.hears) === true,
    onLead: (leads) => {
      leading?.();
      leading = leads ? (listener?.need({ lingers: false }) ?? null) : null;
    },
    history,
    onMoved: () => claimer.wake(),
    onUnplaced: () => placer.glance(),
  });
  let sweep: NodeJS.Timeout | undefined;
  let sweepsSlowly = false;
  let closed = false;
  const sweepLater = (): void => {
    clearTimeout(sweep);
    if (closed) return;
    sweepsSlowly = idle();
    sweep = setTimeout(
      () => {
        crew.sweep();
        sweepLater();
      },
      sweepsSlowly ? IDLE_SWEEP_MS : SWEEP_MS,
    );
  };
  sweepLater();
  /** There is something in hand, or about to be. */
  const quicken = (): void => {
    heart.quicken();
    pressure.quicken();
    if (sweepsSlowly) sweepLater();
  };
  const hush = listener?.on((payload) => {
    const [word, worker, tasks] = payload.split(":");
    if (word === "again" || word === "deaf") {
      claimer.poll.changed();
      keeper.look();
    }
    if (word === "again") {
      claimer.wake();
      heart.hurry(null);
    } else if (word === "stop") heart.hurry(worker ?? "");
    else if (word === "keep") keeper.hear(worker ?? "");
    else if (word === "wake" && worker === heart.current?.id) claimer.ring(Number(tasks));
  });
  const close = async (): Promise<void> => {
    closed = true;
    clearTimeout(sweep);
    pressure.stop();
    hush?.();
    onCall.stop();
    leading?.();
    placer.stop();
    await Promise.all([...lines, beatLine, keepLine].map((line) => line.close()));
    await endPool(pool);
  };
  const parts: Parts = {
    crew,
    heart,
    claimer,
    keeper,
    pressure,
    suspects,
    pool,
    checkRoom: async () => {
      await checkRoom(keepLine, desk, shares);
      await checkTimeout(keepLine, desk);
    },
    close,
  };
  return parts;
}
