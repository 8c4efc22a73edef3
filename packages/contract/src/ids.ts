const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** 100 random bits, so that knowing the key is the permission to use what it names. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(20)), (byte) => ALPHABET[byte & 31]).join("");
}

/** The id of a new instance: a key behind the environment's name, short enough for a DNS label so that it may name a pod. */
export function newInstanceId(environmentName: string): string {
  return `${environmentName.slice(0, 42).replace(/-+$/, "")}-${newKey()}`;
}

/** A client's `x-request-id` if it is safe to log and send on, else null. */
export function parseRequestId(header: unknown): string | null {
  return typeof header === "string" && /^[\w.-]{1,64}$/.test(header) ? header : null;
}
