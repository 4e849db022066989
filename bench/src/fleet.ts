import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { flagsOf } from "./flags.js";
import { nowMs } from "./numbers.js";
import type { FromWorker, Progress, Report, ToWorker, WorkSpec } from "./process/messages.js";

const STUCK_MS = 120_000;
const STOP_MS_MAX = 10_000;
const NOTHING: Progress = { begun: 0, ended: 0, firstMs: null, lastMs: null };

/** How far all processes came. */
export interface Ended {
  readonly tasks: number;
  /** When the last of them had returned; or when time was up. */
  readonly atMs: number;
  /** Time was up before all had returned. */
  readonly cut: boolean;
}

/** Worker processes of one measurement: loaded and connected, and then let go together. */
export class Fleet {
  readonly #members: Member[];
  #check: () => void = () => {};

  private constructor(members: Member[]) {
    this.#members = members;
    for (const member of members) member.onNews = () => this.#check();
  }

  static async launch(spec: WorkSpec, processes: number, profile: string | null): Promise<Fleet> {
    const fleet = new Fleet(Array.from({ length: processes }, () => new Member("work", spec, profile)));
    try {
      await fleet.#until((members) => members.every((m) => m.ready));
    } catch (e) {
      await fleet.stop();
      throw e;
    }
    return fleet;
  }

  go(): void {
    for (const member of this.#members) member.tell({ kind: "go" });
  }

  /** When the first task of all began. */
  firstMs(): number {
    return Math.min(...this.#members.map((m) => m.progress.firstMs ?? Number.POSITIVE_INFINITY));
  }

  /** Tasks that have begun; one that runs twice counts twice. */
  get started(): number {
    return sum(this.#members.map((m) => m.progress.begun));
  }

  /** Resolves when that many tasks have begun, or after so long; with how many have. */
  async begun(total: number, deadlineMs: number): Promise<number> {
    await this.#within(deadlineMs, () => this.started >= total);
    return this.started;
  }

  /** Resolves when that many handlers have returned, or after so long. */
  async ended(total: number, deadlineMs: number): Promise<Ended> {
    const ended = (): number => sum(this.#members.map((m) => m.progress.ended));
    await this.#within(deadlineMs, () => ended() >= total);
    if (ended() < total) return { tasks: ended(), atMs: nowMs(), cut: true };
    const atMs = Math.max(...this.#members.map((m) => m.progress.lastMs ?? 0));
    return { tasks: total, atMs, cut: false };
  }

  async reports(): Promise<Report[]> {
    for (const member of this.#members) member.tell({ kind: "report" });
    await this.#until((members) => members.every((m) => m.report !== null));
    return this.#members.map((m) => m.report!);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
  }

  /** At once: what runs would go on for long, and its database is thrown away. */
  async kill(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.kill()));
  }

  /** Waits for news until a condition holds or time is up. */
  async #within(deadlineMs: number, holds: () => boolean): Promise<void> {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#check();
    }, deadlineMs);
    try {
      await this.#until(() => late || holds());
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits for news until a condition holds; it is an error if one dies or nothing moves for long. */
  #until(holds: (members: readonly Member[]) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const settle = (then: () => void): void => {
        clearTimeout(timer);
        this.#check = (): void => {};
        then();
      };
      this.#check = (): void => {
        clearTimeout(timer);
        const dead = this.#members.find((m) => m.ended);
        if (dead !== undefined) return settle(() => reject(new Error("a worker process died")));
        if (holds(this.#members)) return settle(resolve);
        timer = setTimeout(() => settle(() => reject(new Error("nothing moves"))), STUCK_MS);
      };
      this.#check();
    });
  }
}

class Member {
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;
  onNews: () => void = () => {};
  ready = false;
  ended = false;
  progress = NOTHING;
  report: Report | null = null;

  constructor(file: string, spec: object, profile: string | null) {
    const path = fileURLToPath(new URL(`./process/${file}.js`, import.meta.url));
    const execArgv = flagsOf(profile);
    // Its stdout is our stderr: stdout belongs to the results.
    const stdio = ["ignore", 2, 2, "ipc"] as const;
    // Advanced: ledgers are arrays of numbers, which JSON would make long.
    const how = { execArgv, stdio: [...stdio], serialization: "advanced" as const };
    this.#child = fork(path, [JSON.stringify(spec)], how);
    this.#child.on("message", (message: FromWorker) => this.#hear(message));
    this.#gone = new Promise((resolve) => {
      this.#child.once("exit", () => {
        this.ended = true;
        this.onNews();
        resolve();
      });
    });
  }

  tell(message: ToWorker): void {
    if (message.kind === "report") this.report = null;
    if (!this.ended) this.#child.send(message);
  }

  async stop(): Promise<void> {
    const late = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS_MAX);
    this.tell({ kind: "stop" });
    await this.#gone;
    clearTimeout(late);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }

  #hear(message: FromWorker): void {
    if (message.kind === "ready") this.ready = true;
    else if (message.kind === "report") this.report = message.report;
    else {
      const { lastMs, ...progress } = message.progress;
      this.progress = { ...progress, lastMs: lastMs ?? this.progress.lastMs };
    }
    this.onNews();
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
