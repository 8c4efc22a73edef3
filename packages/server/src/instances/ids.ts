import { randomBytes } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** 100 random bits: who knows the key may use what it opens. */
export function newKey(): string {
  return [...randomBytes(20)].map((byte) => ALPHABET[byte & 31]).join("");
}

/** Short enough for a DNS label, so that it may also name a pod. */
export function newId(environmentName: string): string {
  return `${environmentName.slice(0, 42).replace(/-+$/, "")}-${newKey()}`;
}
