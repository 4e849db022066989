/** A guard of the TypeScript, taken out by a change of the text. */
export interface Mutant {
  /** As in its `guard:` comment. */
  readonly guard: string;
  /** What stands there, exactly once in the file of the guard, and what stands there instead. */
  readonly from: string;
  readonly to: string;
  /** What the test that is named there must say when it dies. */
  readonly dies: RegExp;
}

export const mutants: readonly Mutant[] = [
  {
    guard: "permit before claim",
    from: "if (n > this.free) throw",
    to: "if (n < 0) throw",
    dies: /to throw/,
  },
  {
    guard: "a run ends once",
    from: "this.#finished = true;",
    to: "",
    dies: /a claim had two outcomes|an outcome was sent|was recorded|permits given back/,
  },
  {
    guard: "aborted before the lease runs out",
    from: "session.leaseUntilMs - this.#marginMs()",
    to: "session.leaseUntilMs",
    dies: /AssertionError/,
  },
  {
    guard: "a lease counts from when its heartbeat was sent",
    from: "session.leaseUntilMs = sentMs + ",
    to: "session.leaseUntilMs = this.#o.clock.now() + ",
    dies: /AssertionError/,
  },
  {
    guard: "a transaction of a run that was given up is cut off",
    from: "run.giveUp();",
    to: "",
    dies: /still running after/,
  },
  {
    guard: "nothing is recorded after a lost lease",
    from: 'if (this.#leave(run, "lost")) this.#abandon(run);',
    to: "this.#abandon(run);",
    dies: /for a lost lease was recorded|for a session that was lost/,
  },
  {
    guard: "what waits to be recorded is lost with its lease",
    from: "dropped + outbox.forget(session)",
    to: "dropped",
    dies: /an outcome was sent for a session that was lost/,
  },
  {
    guard: "what was being recorded is lost with its lease",
    from: "if (!parcel.session.lost) return putBack();",
    to: "if (!parcel.session.lost || parcel.items.length > 0) return putBack();",
    dies: /for a session that was lost|did not come to its end|expected \d+ to be \+?0/,
  },
  {
    guard: "a claim that is answered after the lease was lost is not run",
    from: "if (session.lost) permits.give(1);",
    to: "if (session.lost && task.attempt < 0) permits.give(1);",
    dies: /after its lease had run out|for a session that was lost|expected \d+ to be/,
  },
  {
    guard: "a lost reply puts its session in doubt",
    from: "if (want > 0 && isReplyLost(e)) this.#o.onDoubt(session);",
    to: "",
    dies: /expected \d+ to be \+?0|the time that they lie there/,
  },
  {
    guard: "who is told to have room again looks",
    from: "      this.#o.onRoom();\n",
    to: "",
    dies: /AssertionError/,
  },
  {
    guard: "unknown claims are handed back",
    from: "await releaseUnknown(this.#o.line, session.id, this.#o.known(session))",
    to: "0",
    dies: /the time that they lie there/,
  },
  {
    guard: "a claim under way is not unknown",
    from: "new Set([...claims, ...this.asking])",
    to: "new Set(claims)",
    dies: /in hand was handed back as unknown|a task ran twice at once/,
  },
  {
    guard: "an outcome that waits is not unknown",
    from: "[...session.tokens(), ...outbox.tokens(session)]",
    to: "session.tokens()",
    dies: /in hand was handed back as unknown/,
  },
  {
    guard: "a session in doubt signs off late",
    from: "if (early || !session.idle) return;",
    to: "if (!session.idle) return;",
    dies: /AssertionError/,
  },
  {
    guard: "an outcome leaves when its statement was answered",
    from: "this.#keepOrForget(parcel, () => outbox.putBackSuccesses(parcel))",
    to: "this.#keepOrForget(parcel, () => {})",
    dies: /in hand was handed back as unknown|expected \d+ to be \+?0/,
  },
  {
    guard: "any other outcome leaves when its statement was answered",
    from: "this.#keepOrForget(parcel, () => outbox.putBackOthers(parcel))",
    to: "this.#keepOrForget(parcel, () => {})",
    dies: /in hand was handed back as unknown|expected \d+ to be \+?0/,
  },
  {
    guard: "stop() waits until what it hands back is recorded",
    from: "await within(parts.claimer.settled(), FLUSH_MS_MAX);",
    to: "",
    dies: /expected \d+ to be \+?0/,
  },
  {
    guard: "one that was stopped tells of nothing",
    from: 'if (this.#stopped) return;\n    tellTrouble(log, "the database did not take a step", e);',
    to: 'tellTrouble(log, "the database did not take a step", e);',
    dies: /AssertionError/,
  },
  {
    guard: "what arrives while leaving is handed back",
    from: "if (handler === undefined || this.#leaving) {",
    to: "if (handler === undefined) {",
    dies: /AssertionError/,
  },
  {
    guard: "a timeout stays a failure",
    from: "classify(late ? aborted : e)",
    to: "classify(e)",
    dies: /to match object \{ code: 'task_failed' \}/,
  },
  {
    guard: "nothing is claimed beside a suspect",
    from: "this.#busy = true;\n    parts.claimer.pause();",
    to: "this.#busy = true;",
    dies: /a suspect was not alone/,
  },
  {
    guard: "what failed once is tried again",
    from: "again(Math.max(intervalMs, 500));",
    to: "",
    dies: /expected \d+ to be \+?0/,
  },
  {
    guard: "a statement without an answer is given up",
    from: "setTimeout(() => this.#drop(client), this.#replyMsMax)",
    to: "setTimeout(() => {}, this.#replyMsMax)",
    dies: /expected \d+ to be \+?0|did not come to its end/,
  },
  {
    guard: "what was closed refuses",
    from: "if (this.#closing !== null) throw closed();",
    to: "",
    dies: /AssertionError/,
  },
  {
    guard: "the schema judges what is stored",
    from: "acceptsAnything(terms.input) ? input : JSON.parse(text)",
    to: "input",
    dies: /AssertionError|promise resolved/,
  },
  {
    guard: "a tick that is owed stays owed",
    from: "if (sameTiming(seen.status, terms)) return nextAt;",
    to: "",
    dies: /AssertionError/,
  },
  {
    guard: "what was due under the old timing is enqueued first",
    from: "if (trouble === null && (await fireIfDue(db, seen, nextAt))) return null;",
    to: "",
    dies: /AssertionError/,
  },
  {
    guard: "one migrates at a time",
    from: 'await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [\n      `sluice migrate ${schema}`,\n    ]);',
    to: "",
    dies: /already exists|duplicate key|concurrently|AssertionError/,
  },
  {
    guard: "who was cut off did not die",
    from: "if (!this.#stoodStill(session)) this.#cutOff.push(session.id);",
    to: "",
    dies: /AssertionError/,
  },
  {
    guard: "nothing listens beyond loopback without a token",
    from: "serve.token === null && !isLoopback(host)",
    to: "serve.token === null && host === null",
    dies: /expected 'accepted' to be 'invalid_option'/,
  },
  {
    guard: "a completion whose reply was lost is in doubt",
    from: "for (const item of items) this.#doubted.add(item);",
    to: "",
    dies: /Property failed/,
  },
  {
    guard: "what was refused is not completed",
    from: "meter.completed(parcel.items.length - refused);",
    to: "meter.completed(parcel.items.length);",
    dies: /AssertionError/,
  },
  {
    guard: "who can take nothing is not asleep",
    from: "this.#drowsy && !this.#valve.shutAfter(0)",
    to: "this.#drowsy",
    dies: /asleep/,
  },
  {
    guard: "who came after the limit was full did not wait for it",
    from: "if (waitMs > fullMs)",
    to: "if (fullMs < Infinity)",
    dies: /expected/,
  },
  {
    guard: "what cannot be placed fails its node",
    from: "const fault = faultOf(e);",
    to: "const fault = null as string | null;",
    dies: /is still runnin/,
  },
  {
    guard: "small ones fail by themselves",
    from: "const error = faultOf(e);",
    to: "const error = null as string | null;",
    dies: /to be 2/,
  },
  {
    guard: "a pause that was cut off",
    from: "if (!(await followLeft(this.#o.line))) break;",
    to: "break;",
    dies: /is still running/,
  },
  {
    guard: "one by one when many fail",
    from: "while (one < SMALL_MAX && (await placeOne(o))) one++;",
    to: "",
    dies: /is still running/,
  },
  {
    guard: "what fails lets others go first",
    from: "await putOff(db, node, { code, message });",
    to: "",
    dies: /is still running/,
  },
  {
    guard: "a lost connection is no try",
    from: "if (isReplyLost(e) && heldMs < HELD_MS_MAX) throw e;",
    to: "",
    dies: /failed/,
  },
  {
    guard: "a name is used once in a run",
    from: "if (names.has(name)) throw usedTwice(name);",
    to: "",
    dies: /AssertionError/,
  },
  {
    guard: "a map that another has just made is found",
    from: "found ??= await known(o, run, call);",
    to: "",
    dies: /to deeply equal/,
  },
  {
    guard: "who runs alone does not hold",
    from: "call.hold && !run.alone",
    to: "call.hold",
    dies: /is still running/,
  },
  {
    guard: "a list that changed is refused",
    from: 'if (hash.digest("hex") !== found.digest) throw',
    to: "if (found.digest === null) throw",
    dies: /AssertionError|promise resolved/,
  },
  {
    guard: "a handler that goes on beside its map does nothing",
    from: 'if (this.#run.waitsFor !== null) throw waits("of this run");',
    to: "",
    dies: /AssertionError/,
  },
  {
    guard: "half a request holds its connection no longer",
    from: "connectionsCheckingInterval: patienceMs / 5,",
    to: "connectionsCheckingInterval: 30_000,",
    dies: /STACK_TRACE_ERROR|AssertionError|timed out/,
  },
  {
    guard: "without a token only loopback is answered",
    from: 'LOOPBACK.test(headers.host ?? "") ? null : 403',
    to: "headers === null ? 403 : null",
    dies: /AssertionError/,
  },
];
