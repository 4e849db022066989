// kill -9: the process is gone between two instructions, and nobody says goodbye for it.
import type { Fault } from "../stage.js";
import { untilBusy } from "./busy.js";

export const kill: Fault = {
  name: "kill",
  about: "kill -9 of a random worker that has tasks in hand",
  disturbs: "worker",
  bite: (stage, random) =>
    stage.fleet.borrow(random, async (member) => {
      const inHand = await untilBusy(stage, member);
      if (inHand === 0) return 0;
      await member.kill();
      return 1;
    }),
};
