import type { Transport } from "../http/http.ts";
import { fetchTransport } from "./fetch.ts";

/** The browser keeps its own connections. */
export const defaultTransport: Transport = fetchTransport((url, init) => globalThis.fetch(url, init));
