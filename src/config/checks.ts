import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";

// Characters that a header may contain. Shorter tokens can be guessed.
const TOKEN = /^[!-~]{16,1000}$/;
const HOST = /^[\w.:-]{1,253}$/;

/** An address or a name to listen on. */
export function checkHost(option: string, host: unknown): string {
  if (typeof host === "string" && HOST.test(host)) return host;
  throw refusal(option, `must be an IP address or a host name, not ${quote(host)}`);
}

/** A secret that requests must carry. No error contains it. */
export function checkToken(option: string, token: unknown): string {
  if (typeof token === "string" && TOKEN.test(token)) return token;
  throw refusal(option, "must be 16 to 1000 printable characters without spaces");
}

function refusal(option: string, message: string): SluiceError {
  return new SluiceError("invalid_option", `${option} ${message}`, { details: { option } });
}
