import type { Child } from "./child.js";
import type { WireProxy } from "./proxy.js";
import type { Log, Member } from "./stage.js";

const LEAVE_MS_MAX = 30_000;

/** A worker process behind a proxy of its own. */
export class WorkerMember implements Member {
  readonly name: string;
  readonly proxy: WireProxy;
  readonly #child: Child;
  readonly #log: Log;
  /** Whoever ends it says so first; anybody else's end is a finding. */
  #expected = false;
  #dead: Promise<void> | undefined;

  constructor(child: Child, proxy: WireProxy, log: Log, onLost: (why: string) => void) {
    this.name = child.name;
    this.proxy = proxy;
    this.#child = child;
    this.#log = log;
    void this.#watch(onLost);
  }

  get pid(): number {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#child.alive;
  }

  get rssBytes(): number {
    return this.#child.news.rssBytes ?? 0;
  }

  get metricsUrl(): string | undefined {
    return this.#child.news.metricsUrl;
  }

  get ended(): number {
    return this.#child.news.ended ?? 0;
  }

  inHand(): number {
    return this.alive ? (this.#child.news.inHand ?? 0) : 0;
  }

  logLines(): number {
    return this.#child.news.logLines ?? 0;
  }

  async kill(): Promise<void> {
    this.#expected = true;
    this.#child.signal("SIGKILL");
    await this.#child.gone;
    await this.#die();
  }

  async terminate(): Promise<number> {
    this.#expected = true;
    await this.#log.write([{ kind: "terminating", process: this.name }]);
    this.#child.signal("SIGTERM");
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#child.signal("SIGKILL");
    }, LEAVE_MS_MAX);
    await this.#child.gone;
    clearTimeout(timer);
    await this.#die();
    if (late) throw new Error(`${this.name} did not end within ${LEAVE_MS_MAX} ms of SIGTERM`);
    return this.#child.news.stoppedWith ?? 0;
  }

  freeze(): void {
    this.#child.signal("SIGSTOP");
  }

  thaw(): void {
    this.#child.signal("SIGCONT");
  }

  async block(ms: number): Promise<void> {
    const unblocked = this.#child.told("unblocked");
    this.#child.tell({ do: "block", ms });
    await unblocked;
  }

  async #watch(onLost: (why: string) => void): Promise<void> {
    await this.#child.gone;
    this.proxy.close();
    await this.#die();
    if (!this.#expected) onLost(this.#child.lastWords);
  }

  #die(): Promise<void> {
    this.#dead ??= this.#log.write([{ kind: "dead", process: this.name }]);
    return this.#dead;
  }
}
