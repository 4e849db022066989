import { idsOf, refusal } from "../../support/sql.js";
import { schedule } from "./schedule.js";

const RECORD = "\u001e";
const FIELD = "\u001f";

/** Every way to hand enqueue something that no claim could digest. Limits 1 and 2 are per key, 3 a total. */
const doors = {
  priorityNull: "null, 25, '{}'",
  priorityHuge: "40000, 25, '{}'",
  attemptsNull: "0, null, '{}'",
  attemptsNone: "0, 0, '{}'",
  attemptsHuge: "0, 40000, '{}'",
  noKeyAtAll: "0, 25, '{}', '{1}'",
  keyEmpty: "0, 25, '{}', '{1}', ''",
  keyEmptyBesideAnother: `0, 25, '{}', '{1,2}', 'x${FIELD}'`,
  keyOfOneMissing: "0, 25, '{}', '{1,2}', 'x'",
  keyOfFirstMissing: "0, 25, '{}', '{2,1}', 'x'",
  keyTooMany: `0, 25, '{}', '{1}', 'x${FIELD}y'`,
  sameLaneTwice: `0, 25, '{}', '{1,1}', 'x${FIELD}x'`,
  keysForFewer: `0, 25, '{}${RECORD}{}', '{1}', 'x'`,
  ordersForFewer: `0, 25, '{}${RECORD}{}', null, null, 'k'`,
  unknownLimit: "0, 25, '{}', '{99}'",
  limitNull: "0, 25, '{}', '{null}'",
  limitsTooMany: "0, 25, '{}', '{3,3,3,3,3,3,3,3,3}'",
} as const;

type Door = keyof typeof doors | "streamUnknown" | "sqlKeyMissing" | "sqlKeyControl";

const answers: Record<Door, string> = {
  priorityNull: "invalid_option",
  priorityHuge: "invalid_option",
  attemptsNull: "invalid_option",
  attemptsNone: "invalid_option",
  attemptsHuge: "invalid_option",
  noKeyAtAll: "key_missing",
  keyEmpty: "key_missing",
  keyEmptyBesideAnother: "key_missing",
  keyOfOneMissing: "key_missing",
  keyOfFirstMissing: "key_missing",
  keyTooMany: "key_missing",
  sameLaneTwice: "key_missing",
  keysForFewer: "key_missing",
  ordersForFewer: "key_missing",
  unknownLimit: "unknown_limit",
  limitNull: "unknown_limit",
  limitsTooMany: "invalid_option",
  streamUnknown: "unknown_queue",
  sqlKeyMissing: "key_missing",
  sqlKeyControl: "invalid_key",
};

/** Attack 6: every accepted task can be claimed and ends; any other is refused without a trace. */
export const badLanes = schedule({ answers, left: 0, claim: "accepted", ran: 4 }, async (scene) => {
  const [a] = await scene.sessions(1);
  await a.limit("tenant", { perKey: 1 });
  await a.limit("region", { perKey: 1 });
  await a.limit("mail", { total: 1 });
  const stream = await a.type("t", { limits: [1] });
  const worker = await a.register([stream]);
  const ask = (call: string): Promise<string> => refusal(a.value(`select sluice.enqueue_many(${call})`));
  const seen: Partial<Record<Door, string>> = {};
  for (const [name, call] of Object.entries(doors)) seen[name as Door] = await ask(`${stream}, ${call}`);
  seen.streamUnknown = await ask("99, 0, 25, '{}'");
  seen.sqlKeyMissing = await refusal(a.value("select sluice.enqueue('t')"));
  seen.sqlKeyControl = await refusal(a.value(`select sluice.enqueue('t', keys => '{"tenant": "a\\u001fb"}')`));
  const left = await a.value<number>("select count(*)::int from sluice.task");
  await a.enqueue(stream, { n: 2, limits: [1, 2, 3], keys: ["x", "y"], order: "k" });
  await a.enqueue(stream, { n: 2 });
  const ran = async (): Promise<number> => {
    let n = 0;
    let held = await a.claim(worker, 5);
    for (let i = 0; i < 9; i++) {
      n += held.length;
      held = (await a.step(worker, 5, held)).held;
    }
    return n;
  };
  const all = ran();
  const claim = await refusal(all);
  return { answers: seen as Record<Door, string>, left, claim, ran: await all.catch(() => 0) };
});

// Two texts with one MD5, published by Marc Stevens. An attacker who chooses keys can use them.
const TWINS = ["A", "E"].map((x) => `TEXTCOLLBYfGiJUETHQ4h${x}cKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak`);

/** Attack 13: two keys that collide under MD5 use two lanes, whose ids cannot be predicted. */
export const craftedKeys = schedule(
  { meetWithoutSecret: true, claimed: [1, 2], lanes: 2, followSecret: true },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    const meetWithoutSecret = await a.value<boolean>("select md5($1) = md5($2)", TWINS);
    for (const order of TWINS) await a.enqueue(stream, { order });
    const claimed = idsOf(await a.claim(worker, 5));
    const lanes = await a.value<number>("select count(distinct id)::int from sluice.lane");
    await a.rows("update sluice.setting set value = 'another' where name = 'lane_secret'");
    const [id] = await a.enqueue(stream, { order: TWINS[0]! });
    const followSecret = await a.value<boolean>(
      "select o.lanes <> n.lanes from sluice.task o, sluice.task n where o.id = 1 and n.id = $1",
      [id],
    );
    return { meetWithoutSecret, claimed, lanes, followSecret };
  },
);

/** Attack 13: a key cannot spell out the key of another limit, another level or another scope. */
export const imitatedKeys = schedule(
  { lanes: 4, claimed: [1, 2, 3, 4], splitKey: "key_missing", sqlOrder: "invalid_key" },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const one = await a.limit("one", { perKey: 1 });
    const two = await a.limit("two", { perKey: 1 });
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    await a.enqueue(stream, { limits: [one], keys: ["x"] });
    await a.enqueue(stream, { limits: [two], keys: ["x"] });
    await a.enqueue(stream, { order: "x" });
    await a.enqueue(stream, { order: `${one}${FIELD}x` });
    const splitKey = await refusal(a.enqueue(stream, { limits: [one], keys: [`x${FIELD}${two}${FIELD}x`] }));
    await a.value("select sluice.declare_contract('o', 'default', 0, 1, true, null, false, '{}', null)");
    const sqlOrder = await refusal(a.value("select sluice.enqueue('o', order_key => $1)", [`scope${FIELD}x`]));
    const claimed = idsOf(await a.claim(worker, 5));
    const lanes = await a.value<number>("select count(*)::int from sluice.lane");
    return { lanes, claimed, splitKey, sqlOrder };
  },
);
