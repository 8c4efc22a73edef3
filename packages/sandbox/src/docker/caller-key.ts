import { createHash, createHmac, type KeyObject } from "node:crypto";

// The init connects to the program from inside of the sandbox, as an agent's programs could. So the program gets the digest of a key, which
// its arguments may show, and takes only connections that begin with the key.

/** Known to the servers of the home, and different for each sandbox. */
function callerKey(initKey: KeyObject, id: string): Buffer {
  return createHmac("sha256", initKey.export({ type: "pkcs8", format: "der" }))
    .update(`callers of ${id}`)
    .digest();
}

export function callerDigest(initKey: KeyObject, id: string): string {
  return createHash("sha256").update(callerKey(initKey, id)).digest("hex");
}

/** The first bytes of a connection to the program. */
export function callerGreeting(initKey: KeyObject, id: string): string {
  return `aenv-caller ${callerKey(initKey, id).toString("base64url")}\n`;
}
