import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** One statement that went by. */
export interface Exchange {
  /** The name of the prepared statement, or the text of a plain one. */
  readonly statement: string;
  /** What was sent with it, as far as it is text. */
  readonly asked: string;
  /** How many rows came back. */
  readonly rows: number;
}

type Fits = (exchange: Exchange) => boolean;

/** What happens to the next exchange that fits, and who is told. */
interface Trap {
  readonly fits: Fits;
  readonly on: "request" | "reply";
  readonly spring: (link: Link) => void;
}

/**
 * Stands between a worker and the server, and can lose or hold back what they say. It knows just
 * enough of the protocol to tell which statement a reply belongs to, and when the server is done with
 * it: then its transaction has committed.
 */
export class Proxy {
  readonly url: string;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #traps = new Set<Trap>();
  #frozen = false;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async start(to: string): Promise<Proxy> {
    const target = new URL(to);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = new URL(to);
    url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const proxy = new Proxy(server, url.href);
    server.on("connection", (near) => {
      const far = connect(Number(target.port || 5432), target.hostname);
      const link = new Link(near, far, (on, exchange) => proxy.#meet(link, on, exchange));
      proxy.#links.add(link);
      near.on("close", () => proxy.#links.delete(link));
      if (proxy.#frozen) link.freeze();
    });
    onTestFinished(() => proxy.close());
    return proxy;
  }

  /** The next reply that fits is lost, and its connection with it. Resolves once that has happened. */
  loseReply(fits: Fits): Promise<void> {
    return this.#once("reply", fits, (link) => link.cut());
  }

  /** Statements that fit never arrive, and their connections are gone, until this is ended. */
  loseRequests(fits: Fits): { end: () => void } {
    const trap: Trap = { on: "request", fits, spring: (link) => link.cut() };
    this.#traps.add(trap);
    return { end: () => void this.#traps.delete(trap) };
  }

  /** Resolves when the next reply that fits goes by. */
  seeReply(fits: Fits): Promise<void> {
    return this.#once("reply", fits, () => {});
  }

  /** The next reply that fits stays here. Resolves, once it is here, with what lets it go on. */
  async holdReply(fits: Fits): Promise<() => void> {
    let held!: Link;
    await this.#once("reply", fits, (link) => (held = link).hold());
    return () => held.letGo();
  }

  /** Nothing goes through any more in either direction, and nobody is told. */
  freeze(): void {
    this.#frozen = true;
    for (const link of this.#links) link.freeze();
  }

  /** New connections go through. The frozen ones never will: their packets are lost. */
  thaw(): void {
    this.#frozen = false;
  }

  close(): void {
    for (const link of this.#links) link.cut();
    this.#server.close();
  }

  #once(on: Trap["on"], fits: Fits, act: (link: Link) => void): Promise<void> {
    return new Promise((resolve) => {
      const trap: Trap = {
        on,
        fits,
        spring: (link) => {
          this.#traps.delete(trap);
          act(link);
          resolve();
        },
      };
      this.#traps.add(trap);
    });
  }

  #meet(link: Link, on: Trap["on"], exchange: Exchange): void {
    const trap = [...this.#traps].find((t) => t.on === on && t.fits(exchange));
    trap?.spring(link);
  }
}

const [BIND, QUERY, DATA_ROW, READY] = [0x42, 0x51, 0x44, 0x5a];

/** One connection and its other half. */
class Link {
  readonly #near: Socket;
  readonly #far: Socket;
  readonly #met: (on: Trap["on"], exchange: Exchange) => void;
  readonly #fromNear = new Frames();
  readonly #fromFar = new Frames();
  #started = false;
  /** Statements that are not answered yet, oldest first. */
  readonly #open: { statement: string; asked: string; rows: number }[] = [];
  #kept: Buffer[] = [];
  #held = false;

  constructor(near: Socket, far: Socket, met: (on: Trap["on"], exchange: Exchange) => void) {
    this.#near = near;
    this.#far = far;
    this.#met = met;
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", () => this.cut());
      socket.on("close", () => this.cut());
    }
    near.on("data", (chunk: Buffer) => this.#ask(chunk));
    far.on("data", (chunk: Buffer) => this.#answer(chunk));
  }

  freeze(): void {
    this.#near.pause();
    this.#far.pause();
  }

  cut(): void {
    this.#near.destroy();
    this.#far.destroy();
  }

  hold(): void {
    this.#held = true;
  }

  letGo(): void {
    this.#held = false;
    this.#forward();
  }

  #ask(chunk: Buffer): void {
    // The first message of a client has no type.
    if (this.#started) for (const message of this.#fromNear.add(chunk)) this.#listen(message);
    this.#started = true;
    if (!this.#far.destroyed) this.#far.write(chunk);
  }

  #listen({ type, body }: Message): void {
    if (type !== BIND && type !== QUERY) return;
    const from = type === QUERY ? 0 : body.indexOf(0) + 1;
    const statement = body.toString("utf8", from, body.indexOf(0, from));
    const exchange = { statement, asked: body.toString("latin1"), rows: 0 };
    this.#open.push(exchange);
    this.#met("request", exchange);
  }

  /** A reply goes on only when it is here whole: half of one must not get through. */
  #answer(chunk: Buffer): void {
    this.#kept.push(chunk);
    for (const { type } of this.#fromFar.add(chunk)) {
      const exchange = this.#open[0];
      if (exchange === undefined) continue;
      if (type === DATA_ROW) exchange.rows++;
      if (type !== READY) continue;
      this.#open.shift();
      this.#met("reply", exchange);
    }
    if (this.#open.length === 0 && !this.#held) this.#forward();
  }

  #forward(): void {
    for (const chunk of this.#kept.splice(0)) if (!this.#near.destroyed) this.#near.write(chunk);
  }
}

interface Message {
  readonly type: number;
  readonly body: Buffer;
}

/** Cuts a stream of bytes into messages: a type, a length that counts itself, a body. */
class Frames {
  #rest: Buffer = Buffer.alloc(0);

  *add(chunk: Buffer): Generator<Message> {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 5) {
      const length = 1 + this.#rest.readUInt32BE(1);
      if (this.#rest.length < length) return;
      yield { type: this.#rest[0]!, body: this.#rest.subarray(5, length) };
      this.#rest = this.#rest.subarray(length);
    }
  }
}
