import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";

const FILE = "init-key.pem";

/** The private key of a home, created at the first call. All servers of the home have the same one, so each can connect to every init. */
export function openInitKey(home: string): KeyObject {
  const file = join(home, FILE);
  return readKey(file) ?? createKey(home, file);
}

/** A key that servers with different homes share. */
export function readInitKey(file: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(readFileSync(file));
  } catch (cause) {
    throw new PlatformError("request.invalid", `the key of inits cannot be read from ${file}: ${(cause as Error).message}`, { cause });
  }
  if (key.asymmetricKeyType === "ed25519") return key;
  throw new PlatformError("request.invalid", `the key of inits in ${file} is of type ${key.asymmetricKeyType}; it must be ed25519`);
}

/** What the init is started with: the raw public key. */
export function initKeyArgument(key: KeyObject): string {
  const { x = "" } = createPublicKey(key).export({ format: "jwk" });
  return Buffer.from(x, "base64url").toString("base64");
}

/** A link to a complete file: of two servers that start at the same time, both use the key that was first. */
function createKey(home: string, file: string): KeyObject {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const part = `${file}.${randomBytes(6).toString("hex")}`;
  const { privateKey } = generateKeyPairSync("ed25519");
  writeFileSync(part, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  try {
    linkSync(part, file);
    return privateKey;
  } catch (error) {
    const first = readKey(file);
    if (first === null) throw error;
    return first;
  } finally {
    rmSync(part, { force: true });
  }
}

function readKey(file: string): KeyObject | null {
  try {
    return createPrivateKey(readFileSync(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
