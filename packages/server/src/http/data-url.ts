import { isEverywhere } from "./listen.ts";

/** The data port's address as a client sees it, who came to the control port by the name in its Host header. */
export type DataUrl = (hostHeader: string | undefined) => string;

export interface DataUrlOptions {
  readonly publicUrl: string | null;
  /** What the server listens on. */
  readonly host: string;
  /** The data port as this machine sees it. */
  readonly localUrl: string;
}

/**
 * A server that listens on every address does not know by which it is reached; the name by which a client has found the control
 * port is the best word for it. Only whoever sent the name is answered with it, it is nowhere kept, and nothing of it but a plain
 * host name or address goes into a link. Behind a proxy it may be wrong, and then `publicUrl` must be set.
 */
export function dataUrlOf({ publicUrl, host, localUrl }: DataUrlOptions): DataUrl {
  if (publicUrl !== null) return always(publicUrl.replace(/\/$/, ""));
  if (!isEverywhere(host)) return always(localUrl);
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
