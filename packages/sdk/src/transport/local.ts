import { TransportError } from "../errors/http-errors.ts";
import type { Transport } from "../http/http.ts";

/** The transport of an environment on this machine: if nothing listens, the error names the next step. */
export function localTransport(inner: Transport): Transport {
  return {
    async send(request) {
      try {
        return await inner.send(request);
      } catch (cause) {
        if (!(cause instanceof TransportError && cause.isRefused)) throw cause;
        const { wasSent } = cause;
        const message = `nothing listens at ${new URL(request.url).origin}; start it with: aenv run`;
        throw new TransportError(message, { wasSent, isRefused: true, cause });
      }
    },
  };
}
