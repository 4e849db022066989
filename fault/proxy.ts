// Stands between a process and the server, and can lose, hold back or slow down what they say.
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import type { Exchange, Proxy } from "./stage.js";
import { Link, type Side, type Way } from "./wire/link.js";

export type Fits = (exchange: Exchange) => boolean;

/** What happens to an exchange that fits. */
interface Trap {
  readonly on: Side;
  readonly fits: Fits;
  readonly spring: (link: Link) => void;
}

/** Hears of every statement how long the server took for it. */
type Timed = (statement: string, ms: number) => void;

export class WireProxy implements Proxy {
  readonly url: string;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #traps = new Set<Trap>();
  readonly #timed: Timed | undefined;
  #way: Way = "open";
  #delayMs = 0;

  protected constructor(server: Server, to: string, timed?: Timed) {
    const target = new URL(to);
    const url = new URL(to);
    url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.url = url.href;
    this.#server = server;
    this.#timed = timed;
    server.on("connection", (near) => {
      const far = connect(Number(target.port || 5432), target.hostname);
      const link = new Link(near, far, (...met) => this.#meet(...met));
      this.#links.add(link);
      // In a hole only the near side ends; the link is kept until it is cut.
      far.on("close", () => this.#links.delete(link));
      link.slow(this.#delayMs);
      link.go(this.#way);
    });
  }

  static async start(to: string, timed?: Timed): Promise<WireProxy> {
    return new WireProxy(await listening(), to, timed);
  }

  async loseReply(fits: Fits, signal: AbortSignal): Promise<boolean> {
    return this.once("reply", fits, (link) => link.cut(), signal);
  }

  async holdReply(fits: Fits, signal: AbortSignal): Promise<(() => void) | undefined> {
    let held: Link | undefined;
    await this.once("request", fits, (link) => (held = link).hold(), signal);
    return held && (() => held?.letGo());
  }

  blackHole(): void {
    this.#go("hole");
  }

  halfOpen(): void {
    this.#go("deaf");
  }

  slow(ms: number): void {
    this.#delayMs = ms;
    for (const link of this.#links) link.slow(ms);
  }

  restore(): void {
    this.reopen();
    this.slow(0);
    for (const link of this.#links) if (link.disturbed) link.cut();
  }

  swallowed(): number {
    return [...this.#links].filter((link) => link.swallowed).length;
  }

  /** New connections go through. Those that are lost in a hole stay lost, and nobody is told. */
  reopen(): void {
    this.#way = "open";
  }

  close(): void {
    for (const link of this.#links) link.cut();
    this.#server.close();
  }

  /** Does something with every exchange that fits until the trap is taken away. */
  protected set(on: Side, fits: Fits, spring: (link: Link) => void): () => void {
    const trap: Trap = { on, fits, spring };
    this.#traps.add(trap);
    return () => void this.#traps.delete(trap);
  }

  /** Does something with the next exchange that fits. False if the signal came first. */
  protected once(on: Side, fits: Fits, act: (link: Link) => void, signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (sprung: boolean): void => {
        remove();
        signal?.removeEventListener("abort", giveUp);
        resolve(sprung);
      };
      const giveUp = (): void => end(false);
      const remove = this.set(on, fits, (link) => {
        act(link);
        end(true);
      });
      if (signal?.aborted === true) giveUp();
      else signal?.addEventListener("abort", giveUp);
    });
  }

  #go(way: Way): void {
    this.#way = way;
    for (const link of this.#links) link.go(way);
  }

  #meet(link: Link, on: Side, exchange: Exchange, ms: number): void {
    if (on === "reply") this.#timed?.(exchange.statement, ms);
    [...this.#traps].find((t) => t.on === on && t.fits(exchange))?.spring(link);
  }
}

export async function listening(): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
