import type { Pressed } from "../../core/claim-policy.js";
import { pressureOf, type PressureReason, type PressureState } from "../../core/pressure.js";
import type { Clock, Logger } from "../../core/ports.js";
import { Durations } from "./durations.js";
import { LoopDelay } from "./loop.js";
import { memoryReader, type MemoryUse } from "./memory.js";
import type { PressureThresholds } from "./options.js";
import { nextSignal, quietSignal, type Signal } from "./signal.js";

interface PressureReaders {
  readonly memory: () => MemoryUse;
  readonly loopDelayMs: () => number;
}

interface WatchOptions {
  readonly thresholds: PressureThresholds;
  readonly clock: Clock;
  readonly log: Logger;
  /** What currently stops claims. */
  readonly stops: () => readonly ("permits" | "payload")[];
  /** Claims may be larger again. */
  readonly onRelief: () => void;
  /** Whether the worker is idle. Default: never. */
  readonly idle?: () => boolean;
  /** For tests. Default: measure this process. */
  readonly readers?: PressureReaders;
}

const SAMPLE_MS = 250;
// The sampling interval while the worker is idle, so that the process rarely wakes.
const IDLE_SAMPLE_MS = 500;
// A signal ends below this share of its threshold: 75 % of memory where 80 % is the threshold.
const MEMORY_LOW = 0.9375;
const OTHERS_LOW = 0.8;
// The value must stay there for a second.
const OFF_AFTER = 4;
// Memory and durations change slowly and count immediately. One late turn of the event loop, which two samples see, is
// a garbage collection; three samples in a row indicate a busy loop. Permits and payload stop claims immediately, and
// often only for a moment: they are logged if that lasts for a second.
const ON_AFTER: Readonly<Record<PressureReason, number>> = {
  memory: 1,
  task_duration: 1,
  event_loop_delay: 3,
  permits: 4,
  payload: 4,
};

/** The latest measurements. Null: turned off, or nothing to measure yet. */
interface PressureMeasures {
  readonly memory: MemoryUse | null;
  readonly taskDurationP99Ms: number | null;
  readonly eventLoopDelayMs: number | null;
}

type Reduces = "memory" | "task_duration" | "event_loop_delay";

/**
 * Samples the process four times a second. The claimer reads which signals are too high. Everything else uses the
 * state: it is logged when it changes, sent with every heartbeat, and read by metrics.
 */
export class Pressure {
  readonly #o: WatchOptions;
  readonly #durations: Durations;
  readonly #signals = new Map<PressureReason, Signal>();
  #loop: LoopDelay | null = null;
  #readers: PressureReaders | null;
  #timer: NodeJS.Timeout | null = null;
  #slow = false;
  /** How late the last sample was. */
  #lateMs = 0;
  #sampledMs = Number.NEGATIVE_INFINITY;
  #told: readonly PressureReason[] = [];
  #pressed: Pressed = { memory: false, taskDuration: false, eventLoopDelay: false };
  #measures: PressureMeasures = { memory: null, taskDurationP99Ms: null, eventLoopDelayMs: null };

  constructor(options: WatchOptions) {
    this.#o = options;
    this.#durations = new Durations(options.clock.now());
    this.#readers = options.readers ?? null;
  }

  start(): void {
    this.#readers ??= this.#ofThisProcess();
    this.#sampleLater();
  }

  /** There is work: the latest measurement may be old, and from now on sampling runs at the short interval. */
  speedUp(): void {
    if (this.#timer === null || !this.#slow) return;
    // guard: an idle worker measures before it claims much -> test/worker/pressure/pressure.test.ts: "a worker that was idle measures as soon as it has work"
    if (this.#o.clock.now() - this.#sampledMs >= SAMPLE_MS)
      /* guard:sample */ this.sample(); /* end */
    this.#sampleLater();
  }

  #sampleLater(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#slow = this.#o.idle?.() === true;
    if (this.#slow) this.#loop?.rest();
    else this.#loop?.watch();
    const waitMs = this.#slow ? IDLE_SAMPLE_MS : SAMPLE_MS;
    const dueMs = this.#o.clock.now() + waitMs;
    this.#timer = setTimeout(() => {
      this.#lateMs = Math.max(0, this.#o.clock.now() - dueMs);
      this.sample();
      this.#lateMs = 0;
      if (this.#timer !== null) this.#sampleLater();
    }, waitMs).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#loop?.stop();
    this.#timer = this.#loop = this.#readers = null;
  }

  /** A task has ended after `tookMs`. */
  ended(tookMs: number): void {
    this.#durations.add(tookMs);
  }

  /** The signals that make claims smaller. */
  get pressed(): Pressed {
    return this.#pressed;
  }

  get state(): PressureState {
    return pressureOf([...this.#o.stops(), ...this.#reducing()]);
  }

  /** Measures once. Never throws: a signal that cannot be measured counts as no pressure. */
  sample(): void {
    this.#sampledMs = this.#o.clock.now();
    this.#measures = this.#measure();
    const { memory, taskDurationP99Ms, eventLoopDelayMs } = this.#measures;
    const t = this.#o.thresholds;
    const before = this.#reducing().length;
    this.#next("memory", memory?.percent ?? null, t.memoryPercentMax, MEMORY_LOW);
    this.#next("task_duration", taskDurationP99Ms, t.taskDurationP99MsMax, OTHERS_LOW);
    this.#next("event_loop_delay", eventLoopDelayMs, t.eventLoopDelayMsMax, OTHERS_LOW);
    const stops = this.#o.stops();
    for (const stop of ["permits", "payload"] as const) this.#next(stop, stops.includes(stop) ? 1 : 0, 0.5, 1);
    this.#pressed = {
      memory: this.#isOn("memory"),
      taskDuration: this.#isOn("task_duration"),
      eventLoopDelay: this.#isOn("event_loop_delay"),
    };
    this.#tell();
    if (this.#reducing().length < before) this.#o.onRelief();
  }

  #measure(): PressureMeasures {
    const t = this.#o.thresholds;
    const readers = this.#readers;
    const tried = <T>(on: number | null, read: (() => T) | undefined): T | null => {
      try {
        return on === null || read === undefined ? null : read();
      } catch {
        return null;
      }
    };
    return {
      memory: tried(t.memoryPercentMax, readers?.memory),
      taskDurationP99Ms: tried(t.taskDurationP99MsMax, () => this.#durations.p99Ms(this.#o.clock.now())),
      eventLoopDelayMs: tried(t.eventLoopDelayMsMax, readers?.loopDelayMs),
    };
  }

  #next(reason: PressureReason, value: number | null, above: number | null, low: number): void {
    const onAfter = ON_AFTER[reason];
    const was = this.#signals.get(reason) ?? quietSignal;
    const terms = { above: above ?? 0, below: (above ?? 0) * low, onAfter, offAfter: OFF_AFTER };
    this.#signals.set(reason, nextSignal(was, above === null ? null : value, terms));
  }

  #isOn(reason: PressureReason): boolean {
    return this.#signals.get(reason)?.on ?? false;
  }

  #reducing(): Reduces[] {
    const all: Reduces[] = ["memory", "task_duration", "event_loop_delay"];
    return all.filter((reason) => this.#isOn(reason));
  }

  /** Logs once per change. Using all permits is normal, so that is logged only at debug level. */
  #tell(): void {
    const now = [...this.#signals.keys()].filter((reason) => this.#isOn(reason));
    const was = this.#told;
    if (now.length === was.length && now.every((reason) => was.includes(reason))) return;
    this.#told = now;
    const { log } = this.#o;
    const { memory, ...others } = this.#measures;
    const fields = {
      ...pressureOf(now),
      memoryPercent: memory?.percent,
      memoryOf: memory?.of,
      ...others,
    };
    const [worries, worried] = [now, was].map((some) => some.filter((reason) => reason !== "permits")) as [
      PressureReason[],
      PressureReason[],
    ];
    if (worries.some((reason) => !worried.includes(reason))) log.warn("the worker is under pressure", fields);
    else if (worries.length < worried.length) log.info("the pressure on the worker decreased", fields);
    else log.debug("the worker ran out of permits, or has free permits again", fields);
  }

  #ofThisProcess(): PressureReaders {
    const { memoryPercentMax, eventLoopDelayMsMax } = this.#o.thresholds;
    const loop = (this.#loop = eventLoopDelayMsMax === null ? null : new LoopDelay());
    // Looking up the control groups opens files, so skip it if memory is not watched.
    const memory = memoryPercentMax === null ? null : memoryReader();
    return {
      memory: memory ?? (() => ({ percent: 0, of: "host" })),
      loopDelayMs: () => (this.#slow ? this.#lateMs : (loop?.readMs() ?? 0)),
    };
  }
}
