import type { Socket } from "node:net";
import type { Exchange } from "../stage.js";
import { Frames, type Message } from "./frames.js";

/** open: all goes through. hole: nothing does. deaf: what the server says is lost. */
export type Way = "open" | "hole" | "deaf";
export type Side = "request" | "reply";
/** Somebody who sees statements go by. `ms`: how long the server took, for a reply. */
export type Meet = (link: Link, on: Side, exchange: Exchange, ms: number) => void;

interface Asked {
  readonly statement: string;
  readonly asked: string;
  readonly atMs: number;
  rows: number;
}

const [BIND, QUERY, DATA_ROW, READY] = [0x42, 0x51, 0x44, 0x5a];

/**
 * One connection and its other half. It knows just enough of the protocol to tell which statement a
 * reply belongs to, and when the server is done with it: then its transaction has committed. A reply
 * goes on only when it is here whole: half of one must not get through.
 */
export class Link {
  readonly #near: Socket;
  readonly #far: Socket;
  readonly #meet: Meet;
  readonly #fromNear = new Frames();
  readonly #fromFar = new Frames();
  /** Statements that are not answered yet, oldest first. */
  readonly #open: Asked[] = [];
  readonly #late = { toNear: new Delay(), toFar: new Delay() };
  #started = false;
  #kept: Buffer[] = [];
  #held = false;
  #way: Way = "open";
  #delayMs = 0;
  /** What had arrived here when its way was broken. */
  #bytesBefore = 0;

  constructor(near: Socket, far: Socket, meet: Meet) {
    this.#near = near;
    this.#far = far;
    this.#meet = meet;
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      // In a hole the one side does not even hear that the other has gone.
      socket.on("error", () => this.#ended());
      socket.on("close", () => this.#ended());
    }
    near.on("data", (chunk: Buffer) => this.#ask(chunk));
    far.on("data", (chunk: Buffer) => this.#answer(chunk));
  }

  /** Whether a hole or deafness has taken something from it: it can never be whole again. */
  get disturbed(): boolean {
    return this.#way !== "open";
  }

  /** Whether something was said on it since then: it has come as far as here, and no further. */
  get swallowed(): boolean {
    if (this.#way === "open") return false;
    return this.#bytesArrived() > this.#bytesBefore;
  }

  go(way: Way): void {
    this.#way = way;
    this.#bytesBefore = this.#bytesArrived();
    if (way !== "hole") return;
    this.#near.pause();
    this.#far.pause();
  }

  slow(ms: number): void {
    this.#delayMs = ms;
  }

  cut(): void {
    this.#way = "open";
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

  /** In a hole from both sides, for a deaf one from the server. What is paused is read a little further. */
  #bytesArrived(): number {
    const { bytesRead } = this.#far;
    return this.#way === "deaf" ? bytesRead : bytesRead + this.#near.bytesRead;
  }

  #ended(): void {
    if (this.#way !== "hole") this.cut();
  }

  #ask(chunk: Buffer): void {
    // The first message of a client has no type.
    if (this.#started) for (const message of this.#fromNear.add(chunk)) this.#listen(message);
    this.#started = true;
    this.#late.toFar.send(this.#far, chunk, this.#delayMs);
  }

  #listen({ type, body }: Message): void {
    if (type !== BIND && type !== QUERY) return;
    const from = type === QUERY ? 0 : body.indexOf(0) + 1;
    const statement = body.toString("utf8", from, body.indexOf(0, from));
    const asked = body.toString("latin1");
    const exchange = { statement, asked, atMs: performance.now(), rows: 0 };
    this.#open.push(exchange);
    this.#meet(this, "request", exchange, 0);
  }

  #answer(chunk: Buffer): void {
    if (this.#way === "deaf") return;
    for (const { type, raw } of this.#fromFar.add(chunk)) {
      this.#kept.push(raw);
      const exchange = this.#open[0];
      if (exchange === undefined) continue;
      if (type === DATA_ROW) exchange.rows++;
      if (type !== READY) continue;
      this.#open.shift();
      this.#meet(this, "reply", exchange, performance.now() - exchange.atMs);
      if (!this.#held) this.#forward();
    }
    if (this.#open.length === 0 && !this.#held) this.#forward();
  }

  #forward(): void {
    if (this.#kept.length === 0) return;
    const chunk = Buffer.concat(this.#kept.splice(0));
    this.#late.toNear.send(this.#near, chunk, this.#delayMs);
  }
}

/** Holds chunks back without changing their order, also while the delay changes. */
class Delay {
  #freeMs = 0;

  send(to: Socket, chunk: Buffer, delayMs: number): void {
    const now = performance.now();
    this.#freeMs = Math.max(this.#freeMs, now + delayMs);
    const write = (): void => void (to.destroyed || to.write(chunk));
    if (this.#freeMs <= now) write();
    else setTimeout(write, this.#freeMs - now);
  }
}
