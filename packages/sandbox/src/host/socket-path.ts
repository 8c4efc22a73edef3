import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";

/** The system's limit for the path of a unix socket, without its terminating zero. */
const MAX_SOCKET_BYTES = process.platform === "linux" ? 107 : 103;

/** A socket in the sandbox's folder or, if that path is too long, in a folder with a short name in the runtime folder. */
export function socketFor(folder: string, runtime: string, name = "s"): string {
  const own = join(folder, name);
  if (Buffer.byteLength(own) <= MAX_SOCKET_BYTES) return own;
  const short = join(runtime, `aenv-${randomBytes(9).toString("hex")}`, name);
  if (Buffer.byteLength(short) <= MAX_SOCKET_BYTES) return short;
  throw new PlatformError(
    "sandbox.unsupported",
    `the path of a socket may have at most ${MAX_SOCKET_BYTES} bytes; neither ${own} nor ${short} fits`,
  );
}
