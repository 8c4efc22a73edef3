import { messageOf } from "@aenv/contract";
import { Failure } from "../terminal/failure.ts";
import { progressBar } from "../terminal/progress-bar.ts";
import type { Terminal } from "../terminal/terminal.ts";

const BY_HAND = "Download it by other means, and name the file instead.";

/** A `fetch` that takes an address's whole answer while a bar shows how far it is; whatever goes wrong is told with the next step. */
export function fetchWithProgress(terminal: Terminal): typeof fetch {
  return async (address) => {
    const url = String(address);
    const response = await fetch(address).catch((error: unknown) => {
      throw new Failure(`${url} cannot be reached: ${messageOf((error as Error).cause ?? error)}`, {
        exit: "unreachable",
        hint: BY_HAND,
        cause: error,
      });
    });
    if (!response.ok) {
      throw new Failure(`${url} answered ${response.status} ${response.statusText}`.trimEnd(), {
        hint: "Look at the address: it must answer with the archive itself, without a login.",
      });
    }
    return new Response(await read(response, url, terminal));
  };
}

async function read(response: Response, url: string, terminal: Terminal): Promise<Blob> {
  const size = Number(response.headers.get("content-length"));
  // The size is that of what travels; the body may be packed once more on its way.
  const isPlain = response.headers.get("content-encoding") === null;
  const bar = progressBar(terminal, "Downloading", isPlain && size > 0 ? size : null);
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let count = 0;
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      count += chunk.length;
      bar.at(count);
    }
  } catch (cause) {
    throw new Failure(`${url} broke off after ${count} bytes: ${messageOf((cause as Error).cause ?? cause)}`, {
      exit: "unreachable",
      hint: `Try again. ${BY_HAND}`,
      cause,
    });
  } finally {
    bar.end();
  }
  return new Blob(chunks);
}
