import { task, type } from "../../../src/index.js";

export const sendWelcome = task("send-welcome", {
  input: type<{ account: number; name: string }>(),
});
