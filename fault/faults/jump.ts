// The clock of the database is set by minutes while everything runs.
import type { Fault } from "../stage.js";
import { untilBusy } from "./busy.js";

const leastMs = 60_000;
const mostMs = 300_000;

export const clockForward: Fault = {
  name: "clock-forward",
  about: "the database clock is set forward by 1 to 5 minutes: all leases expire at once",
  disturbs: "server",
  bite: async (stage, random) => {
    // The leases of all workers are lost, and each needs a heartbeat to find out.
    const bit = await stage.disturbing("*", "clock-forward", async () => {
      const { tasksLost } = await stage.clock.jump(random.between(leastMs, mostMs));
      await stage.pause(stage.leaseMs);
      return tasksLost > 0 ? 1 : 0;
    });
    // What starts just after a jump is in doubt: there must be more that is not.
    await stage.pause(stage.leaseMs);
    return bit;
  },
};

export const clockBack: Fault = {
  name: "clock-back",
  about: "a worker is killed, and the database clock is set back by 1 to 5 minutes before its lease expires",
  disturbs: "server",
  // That is no disturbance which the audit would have to excuse: the tasks come back within a lease and some time.
  bite: (stage, random) =>
    stage.fleet.borrow(random, async (member) => {
      const inHand = await untilBusy(stage, member);
      await member.kill();
      const { leasesBeyond } = await stage.clock.jump(-random.between(leastMs, mostMs));
      await stage.pause(stage.leaseMs);
      return inHand > 0 && leasesBeyond > 0 ? 1 : 0;
    }),
};

/** Whether a fault sets the clock. */
export function isJump(fault: Fault): boolean {
  return fault === clockForward || fault === clockBack;
}
