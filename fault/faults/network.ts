// The way between one worker and the server is broken, while both are well.
import type { Random } from "../random.js";
import type { Fault, Member, Stage } from "../stage.js";
import { untilBusy } from "./busy.js";

export const blackHole: Fault = {
  name: "black-hole",
  about: "no packet passes between a busy worker and the server, for 2 leases or for less than one",
  disturbs: "worker",
  bite: (stage, random) => broken(stage, random, "black-hole", (member) => member.proxy.blackHole()),
};

export const halfOpen: Fault = {
  name: "half-open",
  about: "the server's replies to a busy worker are lost, for 2 leases or for less than one",
  disturbs: "worker",
  bite: (stage, random) => broken(stage, random, "half-open", (member) => member.proxy.halfOpen()),
};

// Those that have bitten for longer than a lease. Until then it is always that long: what a shorter time
// shows is less.
const bittenLong = new Set<string>();

function broken(stage: Stage, random: Random, what: string, breakIt: (member: Member) => void): Promise<number> {
  return stage.fleet.borrow(random, async (member) => {
    if ((await untilBusy(stage, member)) === 0) return 0;
    const chance = random.pick([0.3, 0.7, 2]);
    const forMs = (bittenLong.has(what) ? chance : 2) * stage.leaseMs;
    const swallowed = await stage.disturbing(member.name, what, async () => {
      await untilBusy(stage, member);
      try {
        breakIt(member);
        await stage.pause(forMs);
        // The end of the run may have cut it short.
        return stage.signal.aborted ? 0 : member.proxy.swallowed();
      } finally {
        member.proxy.restore();
      }
    });
    if (swallowed > 0) bittenLong.add(what);
    return swallowed > 0 ? 1 : 0;
  });
}

const lookEveryMs = 20;

export const slow: Fault = {
  name: "slow",
  about: "every packet between a worker and the server takes 20 to 100 ms longer, for 2 to 4 s",
  disturbs: "worker",
  bite: (stage, random) =>
    stage.fleet.borrow(random, async (member) => {
      const [ms, forMs] = [random.between(20, 100), random.between(2_000, 4_000)];
      // Slow is no excuse: a lease is much longer than this.
      try {
        member.proxy.slow(ms);
        return await claimsIn(stage, member, forMs);
      } finally {
        member.proxy.restore();
      }
    }),
};

/** Whether something came into the worker's empty hands in this time: a whole exchange, with every packet slow. */
async function claimsIn(stage: Stage, member: Member, forMs: number): Promise<number> {
  const end = performance.now() + forMs;
  let inHand = member.inHand();
  let bit = 0;
  while (!stage.signal.aborted && performance.now() < end) {
    await stage.pause(lookEveryMs);
    const now = member.inHand();
    if (now > inHand) bit = 1;
    inHand = now;
  }
  return bit;
}
