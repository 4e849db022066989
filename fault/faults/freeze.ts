// A worker that stands still and does not know it: a paused machine, or a loop that does not turn.
import type { Fault, Member, Stage } from "../stage.js";
import { untilBusy } from "./busy.js";

export const freeze: Fault = {
  name: "freeze",
  about: "SIGSTOP of a worker with running tasks for 3 leases, then SIGCONT: a zombie resumes",
  disturbs: "worker",
  bite: (stage, random) =>
    stage.fleet.borrow(random, async (member) => {
      if ((await untilBusy(stage, member)) === 0) return 0;
      return stage.disturbing(member.name, "freeze", () => frozen(stage, member));
    }),
};

async function frozen(stage: Stage, member: Member): Promise<number> {
  // Writing that it is disturbed took a while.
  await untilBusy(stage, member);
  try {
    member.freeze();
    await stage.pause(3 * stage.leaseMs);
    // Whatever it said last was said before it stopped, so this is what it stopped with.
    return member.inHand() > 0 ? 1 : 0;
  } finally {
    member.thaw();
  }
}

export const blockLoop: Fault = {
  name: "block-loop",
  about: "the event loop of a worker with running tasks is blocked for 2 leases",
  disturbs: "worker",
  bite: (stage, random) =>
    stage.fleet.borrow(random, async (member) => {
      if ((await untilBusy(stage, member)) === 0) return 0;
      return stage.disturbing(member.name, "block-loop", () => blocked(stage, member));
    }),
};

async function blocked(stage: Stage, member: Member): Promise<number> {
  await untilBusy(stage, member);
  const over = member.block(2 * stage.leaseMs);
  // In the middle of it nothing is said: what was said last is what it stands still with.
  await stage.pause(stage.leaseMs);
  const inHand = member.inHand();
  await over;
  return inHand > 0 ? 1 : 0;
}
