import { expect, test } from "vitest";
import {
  attemptsAtTheirEnd,
  completionBesideNewLimit,
  completionStaysOpen,
  isolationOfEach,
  noLease,
  otherIsolation,
  replyIsLost,
  survivedBesideSettle,
  sameIdTwice,
  suspectOfOneGate,
} from "./schedules/fence.js";
import { badLanes, craftedKeys, imitatedKeys } from "./schedules/keys.js";
import {
  backAboveTheNumber,
  busyCounter,
  claimBesideSet,
  concurrencyAdded,
  concurrencyAddedBesideCompletion,
  gatesThatAddUp,
  lateRollback,
  loweredByOne,
  loweredTotalOfTwo,
  loweredWhileRunning,
  missingGate,
  rebornAfterChange,
  setBesideBirth,
  setBesideReuse,
  twoClaimsOfOneGate,
} from "./schedules/numbers.js";
import { enqueueStaysOpen, newSetStaysOpen, serializableKeys } from "./schedules/open.js";
import { betterElsewhere, betterElsewhereOnReuse, nobodyForTheBetter, turnsByAge } from "./schedules/rivals.js";
import { observe, wanted, type Schedule } from "./schedules/schedule.js";
import {
  cancelBesideHandOver,
  cancelOfWaiterAborts,
  completionAborts,
  completionIsNotCommitted,
  crossedLanes,
  headIsLocked,
  laneVanishes,
  twoHandOvers,
  twoLimitsOfOneLevel,
  twoLooksAtAnOrderKey,
  unservedKeepsOrder,
} from "./schedules/waiters.js";

// The attacks of docs/internals/attacks.md. The schedules stand apart, because
// mutants.test.ts runs them again on schemas from which a guard was removed.
async function holds(...schedules: Schedule[]): Promise<void> {
  for (const s of schedules) expect(await observe(s)).toEqual(wanted(s));
}

test("attack 1: a waiter locked by a transaction that aborts is not forgotten", () => holds(cancelOfWaiterAborts));

test("attack 1: a completion that aborts or is cut off loses no slot and no waiter", () =>
  holds(completionAborts("rollback"), completionAborts("cut")));

test("attack 2: a batch with the same id twice settles it once, under its own claim", () =>
  holds(sameIdTwice(0), sameIdTwice(5)));

test("attack 3: another isolation level is refused", () =>
  holds(otherIsolation("repeatable read"), otherIsolation("serializable"), isolationOfEach));

test("attack 4: a step admits in one ascending pass", () => holds(crossedLanes));

test("attack 5: tasks of a lost claim reply come back while their worker continues", () => holds(replyIsLost));

test("attack 5: a surviving worker leaves a task to the settle that has locked it", () => holds(survivedBesideSettle));

test("attack 6: invalid lanes are refused at enqueue", () => holds(badLanes));

test("attack 7: slots reused inside a step respect a lowered limit", () =>
  holds(
    loweredWhileRunning("total"),
    loweredWhileRunning("total", ["other"]),
    loweredWhileRunning("perKey"),
    loweredTotalOfTwo("set"),
    loweredTotalOfTwo("own"),
    loweredByOne,
    twoClaimsOfOneGate,
  ));

test("attack 7: a lane that is created again has the number in force", () => holds(rebornAfterChange));

test("attack 8: no task passes the locked head of an order key", () =>
  holds(headIsLocked("rollback"), headIsLocked("commit")));

test("attack 9: a completion in a user's transaction locks no lane", () => holds(completionStaysOpen));

test("attack 10: an unregistered or expired worker can neither claim nor settle", () => holds(noLease));

test("attack 10: an attempt counter at its maximum fails its task and no claim", () => holds(attemptsAtTheirEnd));

test("attack 11: a slot goes to a better task that only another worker serves", () =>
  holds(betterElsewhere, betterElsewhereOnReuse, turnsByAge));

test.each(["gone", "expired", "full", "draining", "paused"] as const)(
  "attack 11: a slot is not left idle for a better task whose worker or queue is %s",
  (absence) => holds(nobodyForTheBetter(absence)),
);

test("attack 12: a limit added to a type counts running tasks and holds back its backlog", () =>
  holds(concurrencyAdded(2), concurrencyAdded(4)));

test("attack 12: a limit added beside a completion that rolls back counts that task too", () =>
  holds(concurrencyAddedBesideCompletion));

test("attack 12: a limit added beside a completion does not take the task from its worker", () =>
  holds(completionBesideNewLimit));

test("a suspect that passes its type's own limit holds one slot of it", () => holds(suspectOfOneGate));

test("attack 12: a missing gate row does not block its tasks forever", () => holds(missingGate));

test("attack 13: keys crafted to collide do not share a lane", () => holds(craftedKeys));

test("attack 13: a key cannot imitate another limit's key", () => holds(imitatedKeys));

test("two concurrent hand-overs in a lane never exceed its capacity", () => holds(twoHandOvers));

test("a lane that is deleted during a step is checked again", () =>
  holds(laneVanishes("order"), laneVanishes("perKey")));

test("a completion that is never committed does not hold its task forever", () => holds(completionIsNotCommitted));

test("two concurrent admissions of an order key start one task", () => holds(twoLooksAtAnOrderKey));

test("a task passes two limits of the same level", () => holds(twoLimitsOfOneLevel));

test("a task of a type that no worker serves keeps its place in its order key", () => holds(unservedKeepsOrder));

test("a cancel beside a hand-over neither waits nor loses the task", () => holds(cancelBesideHandOver));

test("a step that settles tasks does not wait for a busy counter", () => holds(busyCounter));

test("a slot of one gate is not reused for two others", () => holds(gatesThatAddUp));

test("set_limit admits nothing above the new number after it has returned", () =>
  holds(setBesideReuse, setBesideBirth));

test("a claim beside an uncommitted change of a limit uses the new number", () =>
  holds(claimBesideSet("total"), claimBesideSet("perKey")));

test("a cancel that rolls back after a limit was lowered starts nothing above the limit", () =>
  holds(
    lateRollback({ perKey: 3 }, 1, 3),
    lateRollback({ perKey: 3 }, 1, 1),
    lateRollback({ perKey: 3 }, 0, 1),
    lateRollback({ perKey: 3, total: 9 }, 1, 2),
  ));

test("a task that comes back after its limit was lowered does not start above it", () =>
  holds(backAboveTheNumber("release"), backAboveTheNumber("reap")));

test("an enqueue in an open transaction blocks no other session", () => holds(enqueueStaysOpen));

test("a new set of totals in an open transaction blocks no session that needs the set", () => holds(newSetStaysOpen));

test("serializable transactions with new idempotency keys do not conflict", () => holds(serializableKeys));
