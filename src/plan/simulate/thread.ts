import type { Agenda } from "./agenda.js";
import { Fifo } from "./fifo.js";

interface Job {
  readonly ms: number;
  readonly ended: () => void;
  readonly began: ((atMs: number) => void) | undefined;
}

/** The cores of the machine. A thread that finds no free core queues. */
export class Cores {
  #free: number;
  readonly #line = new Fifo<() => void>();

  constructor(cores: number) {
    this.#free = cores;
  }

  take(then: () => void): void {
    if (this.#free === 0) return this.#line.push(then);
    this.#free--;
    then();
  }

  give(): void {
    this.#free++;
    const next = this.#line.shift();
    if (next !== undefined) this.take(next);
  }
}

/** The event loop of a Node process: one piece of JavaScript at a time, in the order of arrival. */
export class Thread {
  readonly #agenda: Agenda;
  readonly #cores: Cores;
  readonly #jobs = new Fifo<Job>();
  #running = false;
  /** How long the thread has occupied a core. */
  busyMs = 0;

  constructor(agenda: Agenda, cores: Cores) {
    this.#agenda = agenda;
    this.#cores = cores;
  }

  push(ms: number, ended: () => void, began?: (atMs: number) => void): void {
    this.#jobs.push({ ms, ended, began });
    if (!this.#running) this.#run();
  }

  #run(): void {
    this.#running = true;
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      if (job.ms > 0) return this.#occupy(job);
      job.began?.(this.#agenda.nowMs);
      job.ended();
    }
    this.#running = false;
  }

  #occupy({ ms, ended, began }: Job): void {
    this.#cores.take(() => {
      began?.(this.#agenda.nowMs);
      this.#agenda.after(ms, () => {
        this.busyMs += ms;
        this.#cores.give();
        ended();
        this.#run();
      });
    });
  }
}
