import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";

/** The driver takes any text for an address and then looks for a host named "base". */
export function checkUrl(option: string, url: unknown): string {
  if (typeof url === "string" && /^(postgres(ql)?:\/\/|socket:|\/)/.test(url)) return url;
  // Not the text itself: it may hold a password.
  throw new SluiceError(
    "invalid_option",
    `${option} must be text that begins with postgres:// or postgresql://${typeof url === "string" ? "" : `, not ${quote(url)}`}`,
    { details: { option } },
  );
}

/**
 * The address as it may be shown: without its password, wherever that stands. What is hidden goes as
 * far as the last "@", because a password that nobody escaped may hold any sign.
 */
export function maskUrl(url: string): string {
  return url
    .replace(/^([a-z]+:\/\/[^:@/]*):.*@/is, "$1:***@")
    .replaceAll(/([?&](?:password|sslpassword)=)[^&#]*/gi, "$1***");
}
