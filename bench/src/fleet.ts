import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { FromWorker, Progress, Report, ToWorker } from "./process/messages.js";

const STUCK_MS = 120_000;
const STOP_MS_MAX = 10_000;
const NOTHING: Progress = { begun: 0, ended: 0, firstMs: null, lastMs: null };

/** Worker processes of one measurement: loaded and connected, and then let go together. */
export class Fleet {
  readonly #members: Member[];
  #check: () => void = () => {};

  private constructor(members: Member[]) {
    this.#members = members;
    for (const member of members) member.onNews = () => this.#check();
  }

  static async launch(
    file: "work-sluice" | "work-graphile",
    specs: readonly object[],
    profile: string | null,
  ): Promise<Fleet> {
    const fleet = new Fleet(specs.map((spec) => new Member(file, spec, profile)));
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

  /** Resolves when that many tasks have begun. */
  begun(total: number): Promise<void> {
    return this.#until((all) => sum(all.map((m) => m.progress.begun)) >= total);
  }

  /** Resolves with the moment at which that many handlers had returned. */
  async ended(total: number): Promise<number> {
    await this.#until((all) => sum(all.map((m) => m.progress.ended)) >= total);
    return Math.max(...this.#members.map((m) => m.progress.lastMs ?? 0));
  }

  async reports(): Promise<Report[]> {
    for (const member of this.#members) member.tell({ kind: "report" });
    await this.#until((members) => members.every((m) => m.report !== null));
    return this.#members.map((m) => m.report!);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
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
    const execArgv = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
    // Its stdout is our stderr: stdout belongs to the results.
    const stdio = ["ignore", 2, 2, "ipc"] as const;
    this.#child = fork(path, [JSON.stringify(spec)], { execArgv, stdio: [...stdio] });
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
