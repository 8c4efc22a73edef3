import { isWildcard } from "./listen.ts";

/** The data port's URL for a client that used this Host header at the control port. */
export type DataUrl = (hostHeader: string | undefined) => string;

export interface DataUrlOptions {
  readonly publicUrl: string | null;
  /** The address that the server listens on. */
  readonly host: string;
  /** The data port's URL on this machine. */
  readonly localUrl: string;
}

/**
 * A server that listens on all addresses does not know which of them clients use, so it takes the host name from the client's own
 * request to the control port. The name is sent back to that client only, is not stored, and must be a plain host name or
 * address. Behind a proxy it may be wrong; then `publicUrl` must be set.
 */
export function dataUrlOf({ publicUrl, host, localUrl }: DataUrlOptions): DataUrl {
  if (publicUrl !== null) return always(publicUrl.replace(/\/$/, ""));
  if (!isWildcard(host)) return always(localUrl);
  const { port } = new URL(localUrl);
  return (hostHeader) => {
    const name = HOST.exec(hostHeader ?? "")?.[1];
    return name === undefined ? localUrl : `http://${name.toLowerCase()}:${port}`;
  };
}

const HOST = /^([a-z0-9](?:[a-z0-9.-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

function always(url: string): DataUrl {
  return () => url;
}
