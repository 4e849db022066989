// SIGTERM in the middle of work: what a deploy does to every worker.
import type { Fault } from "../stage.js";
import { untilBusy } from "./busy.js";

export const term: Fault = {
  name: "term",
  about: "SIGTERM to a worker with running tasks: it hands them back or finishes them",
  disturbs: "worker",
  bite: (stage, random) =>
    stage.fleet.borrow(random, async (member) => {
      if ((await untilBusy(stage, member)) === 0) return 0;
      return (await member.terminate()) > 0 ? 1 : 0;
    }),
};
