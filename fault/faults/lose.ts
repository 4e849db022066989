// The server has committed, and nobody hears of it: its reply is lost, and the connection with it. That is
// no disturbance which the audit would have to excuse: the worker's other connections are well.
import type { Exchange, Fault, Proxy, Stage } from "../stage.js";
import { isClaim, isEnqueue, isSettle } from "./exchange.js";
import { within } from "./within.js";

const repliesMax = 10;
const withinMs = 6_000;

export const loseEnqueue: Fault = {
  name: "lose-enqueue",
  about: `the replies to ${repliesMax} enqueues are lost after their commit`,
  disturbs: "work",
  bite: (stage) => lose(stage, stage.producers, isEnqueue),
};

export const loseClaim: Fault = {
  name: "lose-claim",
  about: `up to ${repliesMax} replies to claims of one worker are lost after their commit`,
  disturbs: "worker",
  bite: (stage, random) => stage.fleet.borrow(random, (member) => lose(stage, member.proxy, isClaim)),
};

export const loseSettle: Fault = {
  name: "lose-settle",
  about: `up to ${repliesMax} replies to settles of one worker are lost after their commit`,
  disturbs: "worker",
  bite: (stage, random) => stage.fleet.borrow(random, (member) => lose(stage, member.proxy, isSettle)),
};

/** One after the other, so that whoever asked has to find out each time. Resolves with how many were lost. */
async function lose(stage: Stage, proxy: Proxy, fits: (exchange: Exchange) => boolean): Promise<number> {
  return within(stage.signal, withinMs, async (signal) => {
    let lost = 0;
    while (lost < repliesMax && !signal.aborted && (await proxy.loseReply(fits, signal))) lost++;
    return lost;
  });
}
