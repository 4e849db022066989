// The story of a run, from the first worker to the last line of the log.
import { closeSync, openSync, writeSync } from "node:fs";
import { audit } from "./audit/audit.js";
import type { Report } from "./audit/report.js";
import type { Line } from "./audit/line.js";
import { readAccepted } from "./accepted.js";
import { Conductor, type Tally, type Turn } from "./conductor.js";
import { Crowd } from "./crowd.js";
import { WorkerFleet } from "./fleet.js";
import { windowNumbers } from "./load/flows.js";
import { LEASE_MS, terms } from "./load/terms.js";
import { corrected, readLog } from "./log.js";
import { Explainer } from "./explainer.js";
import { clockBack } from "./faults/jump.js";
import type { Options } from "./options.js";
import { randomOf } from "./random.js";
import { lookAtRest, putBack, untilOver } from "./rest.js";
import { Sampler, type Sample } from "./samples.js";
import { Scraper } from "./scraper.js";
import type { Screen } from "./screen.js";
import type { Stage } from "./stage.js";
import { whyStuck } from "./stuck.js";
import { openTheatre, type Theatre } from "./theatre.js";

export interface Played {
  readonly begunMs: number;
  readonly seconds: number;
  readonly produced: number;
  readonly report: Report;
  readonly tallies: readonly Tally[];
  readonly turns: readonly Turn[];
  readonly samples: readonly Sample[];
  readonly stepsMs: readonly number[];
  readonly logLines: ReadonlyMap<string, number>;
  /** What happened that no fault explains. */
  readonly wrong: readonly string[];
}

const LOOK_EVERY_MS = 100;
const WARM_HANDLERS = 50;
const WORK_MS_MAX = 10_000;
const CALM_JUMP_MS = 120_000;
const PUT_BACK_MS_MAX = 60_000;

export async function run(options: Options, screen: Screen, interrupted: AbortSignal) {
  const theatre = await openTheatre(options);
  try {
    return await new Performance(theatre, options, screen, interrupted).play();
  } finally {
    await theatre.close();
    if (options.keep) screen.print(`kept: ${theatre.folder}`);
  }
}

class Performance {
  readonly #theatre: Theatre;
  readonly #options: Options;
  readonly #screen: Screen;
  readonly #interrupted: AbortSignal;
  readonly #over = new AbortController();
  readonly #wrong: string[] = [];
  readonly #fleet: WorkerFleet;
  readonly #sampler: Sampler;
  readonly #scraper: Scraper;
  readonly #explainer: Explainer;
  #crowd: Crowd | undefined;

  constructor(theatre: Theatre, options: Options, screen: Screen, interrupted: AbortSignal) {
    this.#theatre = theatre;
    this.#options = options;
    this.#screen = screen;
    this.#interrupted = interrupted;
    this.#fleet = new WorkerFleet(options.workers, {
      program: theatre.programs.worker,
      url: theatre.server.url,
      logUrl: theatre.logUrl,
      log: theatre.log,
      signal: this.#over.signal,
      onStep: (ms) => this.#sampler.step(ms),
      onWrong: (what) => this.#tellWrong(what),
    });
    this.#sampler = new Sampler(this.#fleet, theatre.sql, (backlog) => this.#crowd?.hold(backlog));
    this.#scraper = new Scraper(this.#fleet, theatre.log);
    this.#explainer = new Explainer(theatre.sql, theatre.log);
  }

  async play(): Promise<Played> {
    const { faults, seed, workers } = this.#options;
    const random = randomOf(seed);
    const conductor = new Conductor(this.#stage(), faults, random, (what) => this.#tellWrong(what));
    try {
      await this.#fleet.start();
      this.#sampler.start();
      this.#scraper.start();
      this.#explainer.start();
      const crowd = new Crowd(this.#theatre, this.#options, (what) => this.#tellWrong(what));
      this.#crowd = crowd;
      this.#theatre.clock.onMove = (aheadMs) => crowd.clock(aheadMs);
      await this.#untilWork();
      const playing = conductor.play(workers);
      playing.catch(() => {});
      await this.#untilEnough(conductor);
      const seconds = this.#seconds();
      await this.#calm(conductor);
      await this.#end(playing);
      const report = await this.#audit();
      const { tallies, turns } = conductor;
      const { samples, stepsMs, begunMs } = this.#sampler;
      const { logLines } = this.#fleet;
      const produced = this.#crowd.produced;
      const wrong = this.#wrong;
      const figures = { begunMs, seconds, produced, samples, stepsMs, logLines };
      return { ...figures, report, tallies, turns, wrong };
    } finally {
      this.#over.abort();
      this.#sampler.stop();
      await this.#scraper.stop();
      await this.#explainer.stop();
      this.#crowd?.kill();
      await this.#fleet.kill();
    }
  }

  /** Faults begin when there is something to disturb. */
  async #untilWork(): Promise<void> {
    const end = performance.now() + WORK_MS_MAX;
    while (this.#fleet.ended < WARM_HANDLERS && performance.now() < end) {
      this.#interrupted.throwIfAborted();
      await pause(LOOK_EVERY_MS, this.#over.signal);
    }
  }

  /** The time is over and every fault has bitten; but not for ever. */
  async #untilEnough(conductor: Conductor): Promise<void> {
    const { seconds } = this.#options;
    const secondsMax = seconds + Math.max(20, seconds);
    // A slow machine may take longer for the tasks that were asked for.
    const makingMax = 60 + 4 * seconds;
    this.#screen.follow(() => this.#progress(conductor));
    for (;;) {
      this.#interrupted.throwIfAborted();
      const played = this.#seconds();
      const bitten = conductor.missing.length === 0 || played >= secondsMax;
      const made = this.#made() || played >= makingMax;
      if (played >= seconds && bitten && made) return;
      await pause(LOOK_EVERY_MS, this.#over.signal);
    }
  }

  /** The load goes on for a while, and no fault keeps a task waiting. */
  async #calm(conductor: Conductor): Promise<void> {
    const { calmSeconds } = this.#options;
    if (calmSeconds === 0) return;
    this.#crowd!.calm();
    await within(PUT_BACK_MS_MAX, "the faults did not end in time", conductor.calm());
    // What relies on a clock that never goes back shows only some time later.
    if (this.#options.faults.includes(clockBack)) await this.#theatre.clock.jump(-CALM_JUMP_MS);
    const end = performance.now() + calmSeconds * 1_000;
    const left = (): number => Math.max(0, (end - performance.now()) / 1_000);
    this.#screen.follow(() => `calm for ${left().toFixed(0)} s`);
    while (left() > 0) {
      this.#interrupted.throwIfAborted();
      await pause(LOOK_EVERY_MS, this.#over.signal);
    }
  }

  /** Whether all tasks were made, if their number was given. */
  #made(): boolean {
    return this.#options.tasks === null || this.#crowd!.finished;
  }

  async #end(playing: Promise<void>): Promise<void> {
    const { server, producers } = this.#theatre;
    this.#over.abort();
    this.#screen.follow(() => "restoring all settings");
    await within(PUT_BACK_MS_MAX, "the faults did not end in time", playing);
    this.#fleet.restore();
    producers.restore();
    await server.freeDisk();
    await server.ensureUp();
    if (!this.#made()) this.#tellWrong("the producers created fewer tasks than requested");
    await this.#crowd!.stop();
    await putBack(this.#theatre);
    let left = 0;
    this.#screen.follow(() => `${left} tasks are left to run`);
    const over = await untilOver(this.#theatre, (n) => (left = n));
    if (!over) {
      this.#tellWrong(`${left} tasks never ended`);
      this.#screen.print((await whyStuck(this.#theatre)).join("\n"));
    }
    await this.#explainer.stop();
    await this.#fleet.stop();
    this.#sampler.stop();
    await this.#scraper.stop();
    await lookAtRest(this.#theatre);
  }

  async #audit(): Promise<Report> {
    this.#screen.follow(() => "auditing");
    const said = await readLog(this.#theatre.logUrl);
    const accepted = await readAccepted(this.#theatre.sql);
    const lines = corrected(said, accepted);
    if (this.#options.log !== null) writeLines(this.#options.log, lines);
    return audit(lines, { ...terms, limits: { ...terms.limits, ...windowNumbers() } });
  }

  #stage(): Stage {
    const { server, sql, clock, sluice, producers, log } = this.#theatre;
    const { signal } = this.#over;
    return {
      leaseMs: LEASE_MS,
      server,
      sql,
      clock,
      sluice,
      fleet: this.#fleet,
      producers,
      log,
      signal,
      disturbing: async (whom, what, during) => {
        await log.write([{ kind: "disturbed", process: whom, what }]);
        try {
          return await during();
        } finally {
          await log.write([{ kind: "restored", process: whom, what }]);
        }
      },
      pause: (ms) => pause(ms, signal),
    };
  }

  #progress(conductor: Conductor): string {
    const bites = conductor.tallies.reduce((sum, tally) => sum + tally.bites, 0);
    const missing = conductor.missing.map(({ fault }) => fault.name);
    const last = conductor.turns.at(-1)?.name ?? "-";
    const time = `${this.#seconds().toFixed(0).padStart(4)} s`;
    const work = `${this.#crowd?.produced ?? 0} enqueued, ${this.#fleet.ended} handlers ended`;
    const rest = missing.length === 0 ? "all faults took effect" : `no effect yet: ${missing.join(" ")}`;
    return `${time}  ${work}, ${bites} bites (last: ${last}), ${rest}`;
  }

  #seconds(): number {
    return (performance.now() - this.#sampler.begunMs) / 1_000;
  }

  #tellWrong(what: string): void {
    if (this.#interrupted.aborted) return;
    this.#wrong.push(what);
    this.#screen.print(`wrong: ${what}`);
  }
}

function writeLines(file: string, lines: readonly Line[]): void {
  const out = openSync(file, "w");
  for (const line of lines) writeSync(out, `${JSON.stringify(line)}\n`);
  closeSync(out);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

async function within(ms: number, complaint: string, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(complaint)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
