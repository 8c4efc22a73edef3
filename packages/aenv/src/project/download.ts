import { boundedChunks, messageOf, ReadLimitExceeded } from "@aenv/contract";
import { Failure } from "../terminal/failure.ts";
import { progressBar } from "../terminal/progress-bar.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Archives of benchmarks have tens of MiB. They are unpacked in memory. */
const MAX_BYTES = 2 ** 30;
const MANUAL_HINT = "Download the file by other means and give its path instead.";

/** A `fetch` that downloads the whole response and shows a progress bar. Errors come with a hint. */
export function fetchWithProgress(terminal: Terminal): typeof fetch {
  return async (address) => {
    const url = String(address);
    const response = await fetch(address).catch((error: unknown) => {
      throw new Failure(`${url} cannot be reached: ${messageOf((error as Error).cause ?? error)}`, {
        exit: "unreachable",
        hint: MANUAL_HINT,
        cause: error,
      });
    });
    if (!response.ok) {
      throw new Failure(`${url} answered ${response.status} ${response.statusText}`.trimEnd(), {
        hint: "Check the address: it must return the archive itself, without a login.",
      });
    }
    return new Response(await read(response, url, terminal));
  };
}

async function read(response: Response, url: string, terminal: Terminal): Promise<Blob> {
  const size = Number(response.headers.get("content-length"));
  // content-length counts compressed bytes, so it is used only if the body is not compressed.
  const isPlain = response.headers.get("content-encoding") === null;
  const bar = progressBar(terminal, "Downloading", isPlain && size > 0 ? size : null);
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let count = 0;
  try {
    for await (const chunk of boundedChunks(response.body, { maxBytes: MAX_BYTES })) {
      chunks.push(chunk);
      count += chunk.length;
      bar.at(count);
    }
  } catch (cause) {
    if (cause instanceof ReadLimitExceeded) throw new Failure(`${url} is not downloaded: ${cause.message}`, { hint: MANUAL_HINT, cause });
    throw new Failure(`${url} was interrupted after ${count} bytes: ${messageOf((cause as Error).cause ?? cause)}`, {
      exit: "unreachable",
      hint: `Try again. ${MANUAL_HINT}`,
      cause,
    });
  } finally {
    bar.end();
  }
  return new Blob(chunks);
}
