import { limit, task, type, type TaskContract, type TaskOptions } from "../../../../src/index.js";
import type { Input, Shape } from "../../adapter.js";

export type Contract = TaskContract<Input, Input>;

type Options = Pick<TaskOptions<ReturnType<typeof type<Input>>, never>, "limits" | "order" | "concurrency">;

/** The name of the one type that an ordinary workload has. */
export const TYPE = "plain";

/** The contract that asks for this shape: the same where tasks are enqueued and where they run. */
export function contractOf(shape: Shape): Contract {
  const { ordered, limit: total, limitPerKey } = shape;
  const limits = [
    ...(total === undefined ? [] : [limit("all-together", { total })]),
    ...(limitPerKey === undefined
      ? []
      : [limit("each-key", { perKey: limitPerKey }).for((input: Input) => input.key!)]),
  ];
  return contract(TYPE, {
    ...(limits.length === 0 ? {} : { limits }),
    ...(ordered === true ? { order: (input) => input.key! } : {}),
  });
}

export function contract(name: string, options: Options = {}): Contract {
  return task(name, { input: type<Input>(), ...options });
}
