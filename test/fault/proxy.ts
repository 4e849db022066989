import { onTestFinished } from "vitest";
import { listening, WireProxy, type Fits } from "../../fault/proxy.js";

export type { Exchange } from "../../fault/stage.js";

/** The proxy of the fault runs as tests use it: it ends with its test. */
export class Proxy {
  readonly #wire: Traps;

  private constructor(wire: Traps) {
    this.#wire = wire;
  }

  static async start(to: string): Promise<Proxy> {
    const proxy = new Proxy(await Traps.open(to));
    onTestFinished(() => proxy.close());
    return proxy;
  }

  get url(): string {
    return this.#wire.url;
  }

  /** The next reply that fits is lost, and its connection with it. Resolves once that has happened. */
  async loseReply(fits: Fits): Promise<void> {
    await this.#wire.loseReply(fits, new AbortController().signal);
  }

  /** Statements that fit never arrive, and their connections are gone, until this is ended. */
  loseRequests(fits: Fits): { end: () => void } {
    return { end: this.#wire.loseRequests(fits) };
  }

  /** Resolves when the next reply that fits goes by. */
  async seeReply(fits: Fits): Promise<void> {
    await this.#wire.seeReply(fits);
  }

  /** The next reply that fits stays here. Resolves, once it is here, with what lets it go on. */
  async holdReply(fits: Fits): Promise<() => void> {
    return this.#wire.keepReply(fits);
  }

  /** After the next matching reply its connection swallows everything silently. Resolves then. */
  async swallowAfter(fits: Fits): Promise<void> {
    await this.#wire.swallowAfter(fits);
  }

  /** The next request that fits arrives, but no reply ever comes on its connection. Resolves when it was sent. */
  async swallowReply(fits: Fits): Promise<void> {
    await this.#wire.swallowReply(fits);
  }

  /** Swallows everything silently in both directions. */
  freeze(): void {
    this.#wire.blackHole();
  }

  /** New connections go through. The frozen ones never will: their packets are lost. */
  thaw(): void {
    this.#wire.reopen();
  }

  close(): void {
    this.#wire.close();
  }
}

/** What only tests ask for. */
class Traps extends WireProxy {
  static async open(to: string): Promise<Traps> {
    return new Traps(await listening(), to);
  }

  loseRequests(fits: Fits): () => void {
    return this.set("request", fits, (link) => link.cut());
  }

  seeReply(fits: Fits): Promise<boolean> {
    return this.once("reply", fits, () => {});
  }

  swallowAfter(fits: Fits): Promise<boolean> {
    return this.once("reply", fits, (link) => link.go("hole"));
  }

  swallowReply(fits: Fits): Promise<boolean> {
    return this.once("request", fits, (link) => link.go("deaf"));
  }

  async keepReply(fits: Fits): Promise<() => void> {
    let letGo!: () => void;
    await this.once("reply", fits, (link) => {
      link.hold();
      letGo = () => link.letGo();
    });
    return letGo;
  }
}
