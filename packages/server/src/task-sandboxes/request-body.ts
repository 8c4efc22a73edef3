import type { Readable } from "node:stream";
import { messageOf, PlatformError } from "@aenv/contract";

/** Larger than any command, which the system limits to about 2 MiB with its variables. */
const MAX_BYTES = 8 * 1_024 ** 2;
const NEWLINE = 10;

/** Reads the first line of a request, its parameters as JSON. What follows can be read from the stream afterwards. */
export function readParameters(stream: Readable): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    const stop = () => {
      stream.off("readable", take).off("end", onEnd).off("close", onEnd);
    };
    const onEnd = () => {
      stop();
      reject(new PlatformError("request.invalid", "the request ended before its parameters"));
    };
    const finish = () => {
      stop();
      try {
        resolve(JSON.parse(Buffer.concat(parts).toString("utf8")));
      } catch (error) {
        reject(new PlatformError("request.invalid", `the parameters are not JSON: ${messageOf(error)}`));
      }
    };
    const take = () => {
      for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read() as Buffer | null) {
        const end = chunk.indexOf(NEWLINE);
        const line = end < 0 ? chunk : chunk.subarray(0, end);
        parts.push(line);
        size += line.length;
        if (size > MAX_BYTES) {
          stop();
          return reject(new PlatformError("request.too_large", `the parameters are larger than ${MAX_BYTES} bytes`));
        }
        if (end < 0) continue;
        if (end + 1 < chunk.length) stream.unshift(chunk.subarray(end + 1));
        return finish();
      }
    };
    stream.on("readable", take).once("end", onEnd).once("close", onEnd);
  });
}
