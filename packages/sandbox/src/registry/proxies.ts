import { BlockList, isIP, isIPv4 } from "node:net";
import type { MachineVariables } from "../images/skopeo.ts";

/** The operator's proxy for a URL, from `https_proxy`, `http_proxy` and `no_proxy`; null if it is asked directly, as this machine always is. */
export function proxyFor(url: URL, variables: MachineVariables): string | null {
  const read = (name: string) => variables[name.toUpperCase()] || variables[name] || "";
  const proxy = read(url.protocol === "https:" ? "https_proxy" : "http_proxy");
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (proxy === "" || host === "localhost" || isLoopback(host)) return null;
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const isDirect = read("no_proxy")
    .split(/[\s,]+/)
    .some((entry) => entry !== "" && matches(entry.toLowerCase(), host, port));
  if (isDirect) return null;
  return /^[a-z0-9]+:\/\//i.test(proxy) ? proxy : `http://${proxy}`;
}

/** An entry is `*`, an address or range of addresses, or a domain, whose subdomains it means too; a domain can have a port. */
function matches(entry: string, host: string, port: string): boolean {
  if (entry === "*") return true;
  const [address = "", prefix] = entry.split("/");
  const family = isIP(address);
  if (family > 0) return isIP(host) === family && contains(address, Number(prefix ?? (family === 4 ? 32 : 128)), host);
  const [, name = "", ofPort] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  if (ofPort !== undefined && ofPort !== port) return false;
  const domain = name.replace(/^\*?\./, "");
  return host.endsWith(`.${domain}`) || (host === domain && domain === name);
}

function isLoopback(host: string): boolean {
  return isIPv4(host) ? contains("127.0.0.0", 8, host) : host === "::1";
}

function contains(network: string, prefix: number, host: string): boolean {
  const type = isIPv4(network) ? "ipv4" : "ipv6";
  const list = new BlockList();
  try {
    list.addSubnet(network, prefix, type);
  } catch {
    return false;
  }
  return list.check(host, type);
}
